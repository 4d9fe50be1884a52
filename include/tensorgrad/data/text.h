// SPDX-License-Identifier: MIT
// Text as characters: vocabularies and text files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Vocabulary of characters. Symbol i is token i. A character is a code point in UTF-8.
class CharVocabulary {
 public:
  /// Creates a vocabulary. Throws IoError if a symbol is not a single character or occurs twice.
  explicit CharVocabulary(std::vector<std::string> symbols);

  /// Returns the vocabulary of a text: its characters, sorted by code point. Throws IoError if the
  /// text is not UTF-8. `name` stands for the text in errors.
  static CharVocabulary of(std::string_view text, std::string_view name = "text");

  /// Returns the number of symbols.
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(symbols_.size()); }

  /// Returns the symbols in the order of their tokens.
  [[nodiscard]] const std::vector<std::string>& symbols() const { return symbols_; }

  /// Returns the tokens of a text. Throws IoError naming the byte if the text is not UTF-8 or has a
  /// character that is not in the vocabulary. `name` stands for the text in errors.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text,
                                                 std::string_view name = "text") const;

  /// Returns the text of tokens. Throws IoError if a token is out of range.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const;

 private:
  std::vector<std::string> symbols_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
};

/// Options of read_text().
struct TextOptions {
  /// Symbols of the vocabulary, for example those of a trained model. Empty: the characters of the
  /// text.
  std::vector<std::string> vocabulary = {};

  double holdout = 0.1;  ///< Fraction of the characters, at the end, for validation; in [0, 1).
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  ///< Limit on the decompressed text.
  /// Limit on the expansion of a compressed file, unless the result has at most 64 MiB.
  double max_expansion = kMaxExpansion;
};

/// Text encoded by a vocabulary of characters.
struct TextData {
  CharVocabulary vocabulary;             ///< Maps characters to tokens.
  std::vector<std::int32_t> train;       ///< Tokens of the first part of the text.
  std::vector<std::int32_t> validation;  ///< Tokens of the rest, see TextOptions::holdout.
};

/// Reads a text file in UTF-8, plain or gzipped, without its byte order mark. Throws IoError if the
/// file cannot be read, is too large, empty or not UTF-8, if a character is not in the vocabulary,
/// or if `holdout` is out of range.
TextData read_text(const FileSource& source, const TextOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
