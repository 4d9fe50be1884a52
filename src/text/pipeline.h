// SPDX-License-Identifier: MIT
// The pipeline from text to ids: finds added tokens, normalizes the rest, splits it into pieces and
// merges them.
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

// Implementation of Tokenizer. Immutable.
class TokenizerImpl {
 public:
  // `bpe` must be created from `definition.model`, which is not kept.
  TokenizerImpl(text::Definition definition, std::shared_ptr<const text::Bpe> bpe);

  // Does not include the model; use model().
  [[nodiscard]] const text::Definition& definition() const { return definition_; }
  [[nodiscard]] const text::BpeModel& model() const { return bpe_->model(); }
  [[nodiscard]] const std::shared_ptr<const text::Bpe>& bpe() const { return bpe_; }
  // Returns the definition with the model, to be changed or written.
  [[nodiscard]] text::Definition whole_definition() const;

  // Appends the ids of `text`. Finds special tokens only if `special` is set.
  void encode(std::string_view text, bool special, std::vector<text::Id>& ids) const;
  // Returns the text of ids, which must have tokens. Bytes that are not UTF-8 are kept if `raw` is
  // set.
  [[nodiscard]] std::string decoded(std::span<const text::Id> ids, bool skip_special,
                                    bool raw) const;
  // True if the text of a token depends on the adjacent tokens.
  [[nodiscard]] bool decodes_together() const { return definition_.subword.has_value(); }
  // Calls `take` for each piece, as training counts them. Treats special tokens as text. A piece is
  // only valid during the call.
  void pieces(std::string_view text, const std::function<void(std::string_view)>& take) const;

  // Returns an added token, or null.
  [[nodiscard]] const AddedToken* added(text::Id id) const;
  // Returns the content of an added token, normalized if it is matched in normalized text.
  [[nodiscard]] const std::string& text_of(const AddedToken& token) const {
    const auto found = normal_contents_.find(token.id);
    return found == normal_contents_.end() ? token.content : found->second;
  }
  [[nodiscard]] std::int32_t vocab_size() const { return vocab_size_; }

 private:
  template <class Take>
  void normalised(std::string_view text, const Take& take) const;
  // `first`: the text begins here.
  template <class Take>
  void cut(std::string_view text, bool first, const Take& take) const;
  template <class Take>
  void cut_by_stages(std::string_view text, bool first, const Take& take) const;

  text::Definition definition_;
  std::shared_ptr<const text::Bpe> bpe_;
  std::optional<text::SubwordEncoder> subword_;      // replaces the merges of bpe_
  text::AddedTokenSet plain_, normal_;               // matched before and after normalization
  std::map<text::Id, std::string> normal_contents_;  // of normal_
  // Set if a single pattern determines the pieces, as in all well-known tokenizers.
  std::optional<PreTokenization> only_pattern_;
  std::int32_t vocab_size_ = 0;
};

}  // namespace detail
}  // namespace tensorgrad::inline TENSORGRAD_ABI
