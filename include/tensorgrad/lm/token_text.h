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

#include "tensorgrad/data/token_data.h"
#include "tensorgrad/data/tokenizer.h"
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

// Windows of `length` tokens and the ones that follow them. The text goes round: what follows its
// last token is its first. In each epoch every token is foretold in a window. The windows fill
// whole batches, so that less than a batch of tokens is foretold again. Where the first begins
// differs from epoch to epoch, and depends on seed and epoch alone; the others begin at equal
// distances.
class TextWindows {
 public:
  // UserError: a text that is shorter than a window, or `length` or `batch` < 1.
  TextWindows(TokenText text, std::int64_t length, std::uint32_t seed, std::int64_t batch = 1);

  // A multiple of `batch`.
  [[nodiscard]] std::int64_t size() const { return count_; }
  // [length + 1]
  [[nodiscard]] std::vector<std::int32_t> at(std::int64_t index, std::int64_t epoch) const;

 private:
  TokenText text_;
  std::int64_t length_, count_ = 0;
  std::uint32_t seed_;
};

}  // namespace tensorgrad::lm
