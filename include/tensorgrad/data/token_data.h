// SPDX-License-Identifier: MIT
// Tokens in files, and cut into what a language model is trained on. Errors about files are
// IoErrors that name the file and the place in it.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace io {
class InputFile;
}

// The target of a pair that does not count: CrossEntropyOptions::ignore_index is to be the same.
inline constexpr std::int32_t kIgnoreIndex = -100;

// Writes `tokens` as a safetensors file with the tensor `tokens` of U16, or U32 where `vocab_size`
// is above 65,536, and vocab_size as metadata. IoError: a token that is not in [0, vocab_size), or
// a path that cannot be written.
void write_tokens(const std::string& path, std::span<const std::int32_t> tokens,
                  std::int64_t vocab_size);

enum class RawTokens : std::uint8_t { kU16, kU32 };

// A file of tokens, read a part at a time, by any number of threads at once. Its size is that when
// it was opened. Copies share it.
class TokenFile {
 public:
  // What write_tokens() wrote: a safetensors file with a tensor `tokens` of U16, U32 or I32.
  explicit TokenFile(const std::string& path);
  // Little-endian numbers and nothing else, as nanoGPT has them.
  TokenFile(const std::string& path, RawTokens type);

  [[nodiscard]] std::int64_t size() const { return size_; }
  // 0: the file does not say.
  [[nodiscard]] std::int64_t vocab_size() const { return vocab_size_; }
  // Fills `out` with the tokens from `begin` on. UserError: there are not as many. IoError: a token
  // is not in [0, vocab_size), or above 2^31 - 1.
  void read(std::int64_t begin, std::span<std::int32_t> out,
            std::source_location loc = std::source_location::current()) const;
  [[nodiscard]] std::vector<std::int32_t> read_all() const;

 private:
  std::string path_;
  std::shared_ptr<const io::InputFile> file_;
  std::int64_t size_ = 0, vocab_size_ = 0;
  std::uint64_t begin_ = 0;  // of the data, in bytes
  int width_ = 0;            // bytes of a token
};

// Chunks of `length` pairs of a token and the one that follows it, which together hold each pair of
// the text once: n tokens make n - 1 pairs. The last chunk is as long as the others: it begins
// earlier, and the targets of what it holds a second time are kIgnoreIndex, as are those behind
// the end of a text that is shorter than a chunk (whose inputs there are 0).
class TokenChunks {
 public:
  // Refers to the tokens. UserError: fewer than two, or `length` < 1.
  TokenChunks(std::span<const std::int32_t> tokens, std::int64_t length,
              std::source_location loc = std::source_location::current());
  TokenChunks(TokenFile file, std::int64_t length,
              std::source_location loc = std::source_location::current());

  struct Chunk {
    std::vector<std::int32_t> inputs, targets;  // [length]
    std::int64_t counted = 0;                   // targets that are no kIgnoreIndex
  };

  [[nodiscard]] std::int64_t size() const { return (pairs_ + length_ - 1) / length_; }
  // n - 1
  [[nodiscard]] std::int64_t pairs() const { return pairs_; }
  // UserError: there is no such chunk.
  [[nodiscard]] Chunk at(std::int64_t index,
                         std::source_location loc = std::source_location::current()) const;

 private:
  TokenChunks(std::int64_t tokens, std::int64_t length, std::source_location loc);

  std::span<const std::int32_t> tokens_;
  std::shared_ptr<const TokenFile> file_;  // null: `tokens_`
  std::int64_t length_ = 0, pairs_ = 0;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
