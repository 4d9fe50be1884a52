// SPDX-License-Identifier: MIT
// Files of tokens, and chunks of inputs and targets for language models. Errors about files are
// IoErrors that name the file and the position in it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace io {
class InputFile;
}

/// Target that does not count in the loss. Pass it as CrossEntropyOptions::ignore_index.
inline constexpr std::int32_t kIgnoreIndex = -100;

/// Writes tokens to a safetensors file, atomically. The tensor `tokens` is U16, or U32 if
/// `vocab_size` exceeds 65,536. The metadata contains `vocab_size`. Throws IoError if a token is
/// not in [0, vocab_size) or the file cannot be written.
void write_tokens(const FileSink& sink, std::span<const std::int32_t> tokens,
                  std::int64_t vocab_size);

/// Element type of a raw token file.
enum class RawTokens : std::uint8_t { kU16, kU32 };

/// Token file that is read in parts, by any number of threads at once. Copies share the open file.
/// Tokens appended after opening are not seen. Bytes in memory must outlive all copies, unless a
/// vector is moved in.
class TokenFile {
 public:
  /// Opens a file made by write_tokens(), or any safetensors file with a tensor `tokens` of U16,
  /// U32 or I32 with one axis. Throws IoError if there is no such tensor or the file cannot be
  /// read.
  explicit TokenFile(const FileSource& source);

  /// Opens a file of little-endian numbers without a header, as nanoGPT writes them. Throws IoError
  /// if it cannot be read or its size is not a multiple of the element size.
  TokenFile(const FileSource& source, RawTokens type);

  /// Returns the number of tokens.
  [[nodiscard]] std::int64_t size() const { return size_; }

  /// Returns the vocabulary size stored in the file, 0 if there is none.
  [[nodiscard]] std::int64_t vocab_size() const { return vocab_size_; }

  /// Fills `out` with the tokens from `begin`. Throws UserError if the file does not have that
  /// many. Throws IoError if a token is not in [0, vocab_size()), or above 2^31 - 1 without a
  /// vocabulary size.
  void read(std::int64_t begin, std::span<std::int32_t> out,
            SourceLocation loc = SourceLocation::current()) const;

  /// Returns all tokens. Throws as read().
  [[nodiscard]] std::vector<std::int32_t> read_all() const;

 private:
  std::shared_ptr<const io::InputFile> file_;
  std::int64_t size_ = 0, vocab_size_ = 0;
  std::uint64_t begin_ = 0;  // offset of the data in bytes
  int width_ = 0;            // bytes per token
};

/// Chunks of `length` inputs and their targets, the next tokens. Together they contain each pair of
/// adjacent tokens once: n tokens form n - 1 pairs.
///
/// All chunks have the same length. The last one begins earlier to fill it up; targets that it
/// repeats are kIgnoreIndex. If the text is shorter than a chunk, the missing inputs are 0 and the
/// missing targets kIgnoreIndex.
class TokenChunks {
 public:
  /// Creates the chunks of tokens in memory, which must outlive them, or of a file. Throws
  /// UserError if there are fewer than two tokens or `length` is less than 1.
  TokenChunks(std::span<const std::int32_t> tokens, std::int64_t length,
              SourceLocation loc = SourceLocation::current());
  TokenChunks(TokenFile file, std::int64_t length, SourceLocation loc = SourceLocation::current());

  /// Inputs and targets of a chunk.
  struct Chunk {
    std::vector<std::int32_t> inputs, targets;  ///< [length]
    std::int64_t counted = 0;                   ///< Number of targets other than kIgnoreIndex.
  };

  /// Returns the number of chunks.
  [[nodiscard]] std::int64_t size() const { return (pairs_ + length_ - 1) / length_; }

  /// Returns the number of pairs, one less than the number of tokens.
  [[nodiscard]] std::int64_t pairs() const { return pairs_; }

  /// Returns a chunk. Throws UserError if the index is not in [0, size()), and as
  /// TokenFile::read().
  [[nodiscard]] Chunk at(std::int64_t index, SourceLocation loc = SourceLocation::current()) const;

 private:
  TokenChunks(std::int64_t tokens, std::int64_t length, SourceLocation loc);

  std::span<const std::int32_t> tokens_;
  std::shared_ptr<const TokenFile> file_;  // null if tokens_ is used
  std::int64_t length_ = 0, pairs_ = 0;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
