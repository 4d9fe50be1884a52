// SPDX-License-Identifier: MIT
// The way of a text to its ids: added tokens are found, the rest is normalised, cut into pieces and
// merged.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/definition.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace detail {

// What a Tokenizer points to. Does not change.
class TokenizerImpl {
 public:
  // `bpe` is made of `definition.model`, which is not kept here.
  TokenizerImpl(text::Definition definition, std::shared_ptr<const text::Bpe> bpe);

  // Without the model: model() has it.
  [[nodiscard]] const text::Definition& definition() const { return definition_; }
  [[nodiscard]] const text::BpeModel& model() const { return bpe_->model(); }
  [[nodiscard]] const std::shared_ptr<const text::Bpe>& bpe() const { return bpe_; }
  // With the model, to be changed or written.
  [[nodiscard]] text::Definition whole_definition() const;

  // Appends the ids of `text`; special tokens in it are found if `special`.
  void encode(std::string_view text, bool special, std::vector<text::Id>& ids) const;
  // The text of ids, which must have tokens. Bytes that are no UTF-8 stay if `raw`.
  [[nodiscard]] std::string decoded(std::span<const text::Id> ids, bool skip_special,
                                    bool raw) const;
  // Whether the text of a token depends on those beside it.
  [[nodiscard]] bool decodes_together() const { return definition_.subword.has_value(); }
  // Gives the pieces that merges do not cross to `take`, as training counts them: all of the text
  // is text. A piece is gone after the call.
  void pieces(std::string_view text, const std::function<void(std::string_view)>& take) const;

  // Null where it is none.
  [[nodiscard]] const AddedToken* added(text::Id id) const;
  // What an added token stands for: its content, as normalised text has it.
  [[nodiscard]] const std::string& text_of(const AddedToken& token) const {
    const auto found = normal_contents_.find(token.id);
    return found == normal_contents_.end() ? token.content : found->second;
  }
  [[nodiscard]] std::int32_t vocab_size() const { return vocab_size_; }

 private:
  template <class Take>
  void normalised(std::string_view text, const Take& take) const;
  // `first`: the text begins there.
  template <class Take>
  void cut(std::string_view text, bool first, const Take& take) const;
  template <class Take>
  void cut_by_stages(std::string_view text, bool first, const Take& take) const;

  text::Definition definition_;
  std::shared_ptr<const text::Bpe> bpe_;
  std::optional<text::SubwordEncoder> subword_;  // in place of bpe_'s merges
  text::AddedTokenSet plain_, normal_;           // looked for before and after text is normalised
  std::map<text::Id, std::string> normal_contents_;  // of the latter
  // Where one pattern does it all, which is so of all well-known tokenizers.
  std::optional<PreTokenization> only_pattern_;
  std::int32_t vocab_size_ = 0;
};

}  // namespace detail
}  // namespace tensorgrad::inline TENSORGRAD_ABI
