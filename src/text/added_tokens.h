// SPDX-License-Identifier: MIT
// Finds added tokens in a text: leftmost first, then longest.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/data/tokenizer.h"
#include "text/bpe.h"

namespace tensorgrad::text {

class AddedTokenSet {
 public:
  AddedTokenSet() = default;
  // Searches for the content of each token. If several have the same content, the first one wins.
  explicit AddedTokenSet(std::vector<AddedToken> tokens);

  [[nodiscard]] bool empty() const { return tokens_.empty(); }

  // Calls `take(part, id)` for the parts of a non-empty text in order. Tokens have their id, the
  // text between them has kNoId and is never empty. Finds special tokens only if `special` is set.
  // As in Hugging Face's tokenizers, parts overlap if white space taken by one token is itself a
  // token.
  void split(std::string_view text, bool special,
             const std::function<void(std::string_view, Id)>& take) const;

 private:
  // Returns the longest token at `at`, or null.
  [[nodiscard]] const AddedToken* match(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;  // sorted by content
  // Returns the next position from `at` at which a token may begin, or text.size().
  [[nodiscard]] std::size_t next(std::string_view text, std::size_t at) const;

  std::array<bool, 256> begins_{};  // for each byte: whether a token begins with it
  int first_bytes_ = 0;             // number of such bytes
};

}  // namespace tensorgrad::text
