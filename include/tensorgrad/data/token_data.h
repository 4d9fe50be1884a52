// SPDX-License-Identifier: MIT
// Token files, and datasets of inputs and targets for language models. Errors about files are
// IoErrors that name the file and the position in it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
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
enum class RawTokens : std::uint8_t {
  kU16,  ///< Two bytes per token.
  kU32   ///< Four bytes per token.
};

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

  /// Returns all tokens. Throws the errors of read().
  [[nodiscard]] std::vector<std::int32_t> read_all() const;

 private:
  std::shared_ptr<const io::InputFile> file_;
  std::int64_t size_ = 0, vocab_size_ = 0;
  std::uint64_t begin_ = 0;  // offset of the data in bytes
  int width_ = 0;            // bytes per token
};

/// Sequence of tokens in memory or in a file. Any number of threads can read it at once. Copies
/// share the tokens.
class TokenSequence {
 public:
  /// Creates an empty sequence.
  TokenSequence() = default;

  /// Creates a sequence of these tokens.
  explicit TokenSequence(std::vector<std::int32_t> tokens);

  /// Creates a sequence of the tokens in a file, which is read on demand.
  explicit TokenSequence(TokenFile file);

  /// Returns the number of tokens.
  [[nodiscard]] std::int64_t size() const { return end_ - begin_; }

  /// Fills `out` with the tokens from `begin`. After the last token, continues with the first one.
  /// Throws UserError if the sequence is empty or `begin` is negative, and the errors of
  /// TokenFile::read().
  void read(std::int64_t begin, std::span<std::int32_t> out,
            SourceLocation loc = SourceLocation::current()) const;

  /// Returns all tokens. Throws the errors of TokenFile::read().
  [[nodiscard]] std::vector<std::int32_t> read_all() const;

  /// Returns the sequence in two parts. The second one has the fraction `last` of the tokens,
  /// rounded down. Throws UserError if `last` is not in [0, 1).
  [[nodiscard]] std::pair<TokenSequence, TokenSequence> split(
      double last, SourceLocation loc = SourceLocation::current()) const;

 private:
  std::shared_ptr<const std::vector<std::int32_t>> tokens_;  // null if file_ is used
  std::shared_ptr<const TokenFile> file_;
  std::int64_t begin_ = 0, end_ = 0;
};

/// Treatment of the end of the token sequence in a TokenDataset.
enum class TokenTail : std::uint8_t {
  /// Tokens after the last complete example are not used.
  kDrop,
  /// The last example ends at the last token. In all examples, targets that are also in a previous
  /// example are kIgnoreIndex. Hence each token but the first counts as a target once, as for the
  /// perplexity of a text. If there are too few tokens for an example, the missing inputs are 0 and
  /// the missing targets kIgnoreIndex.
  kMask,
  /// The first token follows the last one, and every token is a target in each epoch. The number of
  /// examples is a multiple of `batch`, so that fewer than `batch * length` tokens are targets
  /// twice. The examples begin at equal distances, up to one token. The start of the first one
  /// depends on seed and epoch.
  kWrap,
};

/// Options of TokenDataset.
struct TokenDatasetOptions {
  std::int64_t length = 0;  ///< Inputs per example, at least 1.

  /// Distance between the starts of examples, in tokens; 0: `length`. It is at most `length` for
  /// kMask, and 0 for kWrap.
  std::int64_t stride = 0;

  TokenTail tail = TokenTail::kDrop;  ///< Treatment of the end of the sequence.
  std::int64_t batch = 1;             ///< Batch size of the loader, at least 1. Only for kWrap.
  std::uint32_t seed = 0;             ///< Seed of the start of the first example. Only for kWrap.
};

/// Example of a TokenDataset.
struct TokenExample {
  std::vector<std::int32_t> inputs;   ///< [length]
  std::vector<std::int32_t> targets;  ///< [length], the token after each input.
  std::int64_t counted = 0;           ///< Number of targets other than kIgnoreIndex.
};

/// Examples of `length` consecutive tokens and their next tokens, for language models.
///
/// With stride 1, a shuffled DataLoader draws examples at random positions.
class TokenDataset {
 public:
  /// Creates the dataset. Throws UserError if an option is out of range, or if there are fewer than
  /// `length + 1` tokens for kDrop, 2 for kMask, or `length` for kWrap.
  TokenDataset(TokenSequence tokens, const TokenDatasetOptions& options,
               SourceLocation loc = SourceLocation::current());

  /// Returns the number of examples.
  [[nodiscard]] std::int64_t size() const { return count_; }

  /// Returns an example. `epoch` matters only for kWrap. Throws UserError if the index is not in
  /// [0, size()), and the errors of TokenFile::read().
  [[nodiscard]] TokenExample at(std::int64_t index, std::int64_t epoch = 0,
                                SourceLocation loc = SourceLocation::current()) const;

 private:
  [[nodiscard]] std::int64_t wrapped_begin(std::int64_t index, std::int64_t epoch) const;

  TokenSequence tokens_;
  TokenDatasetOptions options_;
  std::int64_t count_ = 0;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
