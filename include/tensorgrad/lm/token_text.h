// SPDX-License-Identifier: MIT
// The tokens that a language model is trained on: documents one behind the other, in memory or in a
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorgrad/token_data.h"
#include "tensorgrad/tokenizer.h"
#include "tensorgrad/types.h"

namespace tensorgrad::lm {

// A stretch of tokens, to be read by any number of threads at once. Copies share it.
class TokenText {
 public:
  TokenText() = default;  // none
  explicit TokenText(std::vector<std::int32_t> tokens);
  explicit TokenText(TokenFile file);

  [[nodiscard]] std::int64_t size() const { return end_ - begin_; }
  // Fills `out` with the tokens from `begin` on; behind the last comes the first again. Throws
  // UserError where there are none, or `begin` is negative.
  void read(std::int64_t begin, std::span<std::int32_t> out) const;
  [[nodiscard]] std::vector<std::int32_t> read_all() const;
  // The first tokens, and the last share of them. Throws UserError where it is not in [0, 1).
  [[nodiscard]] std::pair<TokenText, TokenText> split(double last) const;

 private:
  std::shared_ptr<const std::vector<std::int32_t>> tokens_;
  std::optional<TokenFile> file_;
  std::int64_t begin_ = 0, end_ = 0;
};

struct TokenSplit {
  TokenText train, validation;
};

struct PackOptions {
  double holdout = 0.1;  // the share at the end of each document that goes to `validation`; [0, 1)
  EncodeOptions encode = {};
};

// Documents packed into one text each for training and validation. Behind each piece comes the
// tokenizer's eos, where it has one and the piece does not end with it: a model learns where texts
// end, and texts do not run into one another. The part of a document that is trained on ends so
// too, although the document goes on in `validation`.
TokenSplit pack_documents(std::span<const std::string> documents, const Tokenizer& tokenizer,
                          const PackOptions& options = {});

// Windows of `length` tokens and the ones that follow them, which together hold each token of the
// text about once: as many whole windows as it has. Where the first begins differs from epoch to
// epoch (the text goes round), and depends on seed and epoch alone.
class TextWindows {
 public:
  // UserError: a text that is not longer than a window.
  TextWindows(TokenText text, std::int64_t length, std::uint32_t seed);

  [[nodiscard]] std::int64_t size() const { return text_.size() / length_; }
  // [length + 1]
  [[nodiscard]] std::vector<std::int32_t> at(std::int64_t index, std::int64_t epoch) const;

 private:
  TokenText text_;
  std::int64_t length_;
  std::uint32_t seed_;
};

}  // namespace tensorgrad::lm
