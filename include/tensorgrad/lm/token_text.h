// SPDX-License-Identifier: MIT
// Training data of language models: texts of tokens, packed documents and windows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorgrad/data/token_data.h"
#include "tensorgrad/data/tokenizer.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Sequence of tokens in memory or in a file. Any number of threads can read it at once. Copies
/// share the tokens.
class TokenText {
 public:
  /// Creates an empty text.
  TokenText() = default;

  /// Creates a text of these tokens.
  explicit TokenText(std::vector<std::int32_t> tokens);

  /// Creates a text of the tokens in a file, which is read on demand.
  explicit TokenText(TokenFile file);

  /// Returns the number of tokens.
  [[nodiscard]] std::int64_t size() const { return end_ - begin_; }

  /// Fills `out` with the tokens from `begin`. The text repeats after its last token. Throws
  /// UserError if the text is empty or `begin` is negative, and as TokenFile::read().
  void read(std::int64_t begin, std::span<std::int32_t> out) const;

  /// Returns all tokens.
  [[nodiscard]] std::vector<std::int32_t> read_all() const;

  /// Returns the text in two parts. The second one has the fraction `last` of the tokens, rounded
  /// down. Throws UserError if `last` is not in [0, 1).
  [[nodiscard]] std::pair<TokenText, TokenText> split(double last) const;

 private:
  std::shared_ptr<const std::vector<std::int32_t>> tokens_;
  std::optional<TokenFile> file_;
  std::int64_t begin_ = 0, end_ = 0;
};

/// Texts for training and validation.
struct TokenSplit {
  TokenText train, validation;
};

/// Options of pack_documents().
struct PackOptions {
  double holdout = 0.1;  ///< Fraction at the end of each document for validation, in [0, 1).
  EncodeOptions encode = {};
  bool add_eos = true;  ///< Ends each document with the tokenizer's eos token, if there is one.
};

/// Returns the tokens of all documents, concatenated into one text for training and one for
/// validation. With `add_eos`, each document or part of one ends with the eos token. This includes
/// training parts of documents that continue in the validation text. Throws UserError if
/// `holdout` is out of range, and as Tokenizer::encode().
TokenSplit pack_documents(std::span<const std::string> documents, const Tokenizer& tokenizer,
                          const PackOptions& options = {});

/// Windows of `length` input tokens and their next tokens, for training. The text is treated as
/// circular: its first token follows the last one. In each epoch, every token is a target.
///
/// The number of windows is a multiple of `batch`, so that less than a batch of tokens occurs twice
/// in an epoch. The windows begin at equal distances, up to one token. The start of the first one
/// differs between epochs and depends only on seed and epoch.
class TextWindows {
 public:
  /// Creates the windows. Throws UserError if the text is shorter than `length`, or if `length` or
  /// `batch` is less than 1.
  TextWindows(TokenText text, std::int64_t length, std::uint32_t seed, std::int64_t batch = 1);

  /// Returns the number of windows in an epoch, a multiple of `batch`.
  [[nodiscard]] std::int64_t size() const { return count_; }

  /// Returns the tokens of a window, [length + 1], for `index` in [0, size()).
  [[nodiscard]] std::vector<std::int32_t> at(std::int64_t index, std::int64_t epoch) const;

 private:
  TokenText text_;
  std::int64_t length_, count_ = 0;
  std::uint32_t seed_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
