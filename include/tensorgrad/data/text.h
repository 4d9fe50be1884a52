// SPDX-License-Identifier: MIT
// Text as characters.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Characters as numbers: the i-th symbol is token i. A character is a code point in UTF-8.
class Vocabulary {
 public:
  // IoError: a symbol that is not one character, or is there twice.
  explicit Vocabulary(std::vector<std::string> symbols);
  // The characters of `text`, sorted by code point.
  static Vocabulary of(std::string_view text, std::string_view name = "text");

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(symbols_.size()); }
  [[nodiscard]] const std::vector<std::string>& symbols() const { return symbols_; }
  // IoError, with the byte: a character that is not among the symbols, or no UTF-8. `name` stands
  // for the text in messages.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text,
                                                 std::string_view name = "text") const;
  // IoError: a token out of range.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const;

 private:
  std::vector<std::string> symbols_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
};

struct TextOptions {
  // What a trained model knows; empty: the characters that occur.
  std::vector<std::string> vocabulary = {};
  double holdout = 0.1;  // share of the characters, at the end, that is `validation`; in [0,1)
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  // after inflation
};

struct TextData {
  Vocabulary vocabulary;
  std::vector<std::int32_t> train, validation;  // tokens
};

// A file in UTF-8; a byte order mark is skipped.
TextData read_text(const std::string& path, const TextOptions& options = {});

// `text` is the file, inflated already.
TextData parse_text(std::string_view text, std::string_view name, const TextOptions& options = {});

// Windows of `length` tokens in a row, each `stride` tokens after the one before. With stride 1 a
// shuffled DataLoader draws them at random, with stride `length` - 1 an unshuffled one reads the
// text from beginning to end, foretelling every token but the first once. Refers to the tokens.
class TokenWindows {
 public:
  // UserError where not even one fits.
  TokenWindows(std::span<const std::int32_t> tokens, std::int64_t length, std::int64_t stride = 1,
               std::source_location loc = std::source_location::current());

  [[nodiscard]] std::int64_t size() const {
    return (static_cast<std::int64_t>(tokens_.size()) - length_) / stride_ + 1;
  }
  [[nodiscard]] std::span<const std::int32_t> at(
      std::int64_t index, std::source_location loc = std::source_location::current()) const;

 private:
  std::span<const std::int32_t> tokens_;
  std::int64_t length_, stride_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
