// SPDX-License-Identifier: MIT
// Finds added tokens in a text: the leftmost, and of those that begin there the longest.
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
  // Each is looked for as its content. Of equal ones the first counts.
  explicit AddedTokenSet(std::vector<AddedToken> tokens);

  [[nodiscard]] bool empty() const { return tokens_.empty(); }

  // Gives the parts of `text`, which is not empty, in order to `take(part, id)`: tokens with their
  // id, what is between them with kNoId. Special tokens are found only if `special`. A part is
  // never empty where it has no id. Where white space that one token took is also another token,
  // parts overlap, as they do in Hugging Face's tokenizers.
  void split(std::string_view text, bool special,
             const std::function<void(std::string_view, Id)>& take) const;

 private:
  // The longest token at `at`; null where there is none.
  [[nodiscard]] const AddedToken* match(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;  // sorted by content
  // Where the next token may begin, from `at` on; text.size() where none can.
  [[nodiscard]] std::size_t next(std::string_view text, std::size_t at) const;

  std::array<bool, 256> begins_{};  // some token begins with the byte
  int first_bytes_ = 0;             // how many of them there are
};

}  // namespace tensorgrad::text
