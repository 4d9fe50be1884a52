// SPDX-License-Identifier: MIT
#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "text/unicode.h"

namespace tensorgrad::text {

AddedTokenSet::AddedTokenSet(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.content.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  const auto same = [](const AddedToken& a, const AddedToken& b) { return a.content == b.content; };
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end(), same), tokens_.end());
  for (const AddedToken& token : tokens_) {
    bool& begins = begins_[static_cast<unsigned char>(token.content[0])];
    first_bytes_ += begins ? 0 : 1;
    begins = true;
  }
}

std::size_t AddedTokenSet::next(std::string_view text, std::size_t at) const {
  if (first_bytes_ == 1) return std::min(text.find(tokens_[0].content[0], at), text.size());
  while (at < text.size() && !begins_[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

const AddedToken* AddedTokenSet::match(std::string_view text, std::size_t at) const {
  const AddedToken* found = nullptr;
  // The tokens that match the first `length` bytes are contiguous.
  auto first = tokens_.begin(), last = tokens_.end();
  for (std::size_t length = 0; first != last; ++length) {
    if (first->content.size() == length) {
      found = &*first;
      if (++first == last) break;
    }
    if (at + length == text.size()) break;
    const char next = text[at + length];
    const auto byte = [](char c) { return static_cast<unsigned char>(c); };
    first = std::lower_bound(first, last, next, [&](const AddedToken& token, char c) {
      return byte(token.content[length]) < byte(c);
    });
    last = std::upper_bound(first, last, next, [&](char c, const AddedToken& token) {
      return byte(c) < byte(token.content[length]);
    });
  }
  return found;
}

void AddedTokenSet::split(std::string_view text, bool special,
                          const std::function<void(std::string_view, Id)>& take) const {
  std::size_t taken = 0;  // everything before has been passed to take()
  for (std::size_t at = next(text, 0); at < text.size(); at = next(text, at)) {
    const AddedToken* const token = match(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->special && !special) continue;
    if (token->single_word && (word_ends_at(text, begin) || word_begins_at(text, end))) continue;
    if (token->lstrip) begin = std::max(spaces_before(text, begin), taken);
    if (token->rstrip) end = skip_spaces(text, end);
    if (end <= begin) continue;  // white space already taken by the previous token
    if (taken < begin) take(text.substr(taken, begin - taken), kNoId);
    take(text.substr(begin, end - begin), token->id);
    taken = end;
  }
  if (taken < text.size()) take(text.substr(taken), kNoId);
}

}  // namespace tensorgrad::text
