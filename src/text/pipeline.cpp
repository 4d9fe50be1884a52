// SPDX-License-Identifier: MIT
#include "text/pipeline.h"

#include <algorithm>
#include <utility>

#include "text/patterns.h"
#include "text/unicode.h"

namespace tensorgrad::text {
namespace {

struct Found {
  std::size_t begin = 0, end = 0;
  bool match = false;  // of what the stage looks for; after the behaviour: to be left out
};

template <class Is>
std::vector<Found> characters_that_are(std::string_view text, const Is& is) {
  std::vector<Found> all;
  std::size_t last = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (is(c)) {
      if (last < at) all.push_back({last, at, false});
      last = at + c.size;
      all.push_back({at, last, true});
    }
    at += c.size;
  }
  if (last < text.size()) all.push_back({last, text.size(), false});
  return all;
}

// What a stage finds in `text` and what is between; together they cover it.
std::vector<Found> find_all(const Stage& stage, std::string_view text) {
  std::vector<Found> all;
  switch (stage.what) {
    case Stage::What::kPattern:
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = piece_end(stage.pattern, text, at);
        all.push_back({at, end, true});
        at = end;
      }
      return all;
    case Stage::What::kLiteral:
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t found = std::min(text.find(stage.literal, at), text.size());
        if (at < found) all.push_back({at, found, false});
        at = found;
        if (at == text.size()) break;
        all.push_back({at, at + stage.literal.size(), true});
        at += stage.literal.size();
      }
      return all;
    case Stage::What::kDigits:
      return characters_that_are(text, [](const Character& c) { return (c.kinds & kNumber) != 0; });
    case Stage::What::kPunctuation:
      return characters_that_are(text,
                                 [](const Character& c) { return (c.kinds & kPunctuation) != 0; });
  }
  return all;
}

// Joins what the behaviour joins. `match` says of the result what is left out.
std::vector<Found> joined_parts(std::vector<Found> all, const Stage& stage) {
  if (stage.invert) {
    for (Found& one : all) one.match = !one.match;
  }
  if (stage.behaviour == Behaviour::kRemoved) return all;
  const bool backwards = stage.behaviour == Behaviour::kMergedWithNext;
  if (backwards) std::reverse(all.begin(), all.end());
  std::vector<Found> parts;
  bool before = false;  // whether the last one was a match
  for (const Found& one : all) {
    bool join = false;
    if (stage.behaviour == Behaviour::kContiguous) join = one.match == before;
    if (stage.behaviour == Behaviour::kMergedWithPrevious || backwards) join = one.match && !before;
    before = one.match;
    if (!join || parts.empty()) {
      parts.push_back({one.begin, one.end, false});
    } else if (backwards) {
      parts.back().begin = one.begin;
    } else {
      parts.back().end = one.end;
    }
  }
  if (backwards) std::reverse(parts.begin(), parts.end());
  return parts;
}

// The pattern that alone decides about the pieces of these stages, if it is that simple.
std::optional<PreTokenization> only_pattern_of(const Definition& definition) {
  if (!definition.model.byte_level) return PreTokenization::kNone;
  if (definition.add_prefix_space) return std::nullopt;
  if (definition.stages.empty()) {
    return definition.byte_level_pattern ? PreTokenization::kGpt2 : PreTokenization::kNone;
  }
  const Stage& stage = definition.stages[0];
  const bool all_kept = stage.behaviour == Behaviour::kIsolated ||
                        (stage.behaviour == Behaviour::kRemoved && stage.invert);
  if (definition.stages.size() > 1 || definition.byte_level_pattern || !all_kept ||
      stage.what != Stage::What::kPattern) {
    return std::nullopt;
  }
  return stage.pattern;
}

template <class Take>
void cut_by_pattern(PreTokenization pattern, std::string_view text, const Take& take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = piece_end(pattern, text, at);
    take(text.substr(at, end - at));
    at = end;
  }
}

}  // namespace
}  // namespace tensorgrad::text

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace detail {

TokenizerImpl::TokenizerImpl(text::Definition definition, std::shared_ptr<const text::Bpe> bpe)
    : definition_(std::move(definition)), bpe_(std::move(bpe)) {
  definition_.model.byte_level = model().byte_level;
  only_pattern_ = text::only_pattern_of(definition_);
  std::vector<AddedToken> plain, normal;
  std::int32_t largest = model().tokens.largest();
  // Special ones go first, as in Hugging Face's tokenizers: it matters where two are equal.
  for (const bool special : {true, false}) {
    for (AddedToken token : definition_.added) {
      largest = std::max(largest, token.id);
      if (token.special != special) continue;
      if (!token.normalized) {
        plain.push_back(std::move(token));
        continue;
      }
      for (const text::NormalForm form : definition_.normal_forms) {
        token.content = text::normalized(token.content, form);
      }
      normal_contents_[token.id] = token.content;
      normal.push_back(std::move(token));
    }
  }
  plain_ = text::AddedTokenSet(std::move(plain));
  normal_ = text::AddedTokenSet(std::move(normal));
  vocab_size_ = largest + 1;
}

text::Definition TokenizerImpl::whole_definition() const {
  text::Definition whole = definition_;
  whole.model = model();
  return whole;
}

const AddedToken* TokenizerImpl::added(text::Id id) const {
  const auto found = std::lower_bound(definition_.added.begin(), definition_.added.end(), id,
                                      [](const AddedToken& a, text::Id b) { return a.id < b; });
  return found != definition_.added.end() && found->id == id ? &*found : nullptr;
}

template <class Take>
void TokenizerImpl::normalised(std::string_view text, const Take& take) const {
  if (definition_.normal_forms.empty() || text::is_ascii(text)) return take(text);
  std::string normal(text);
  for (const text::NormalForm form : definition_.normal_forms) {
    normal = text::normalized(normal, form);
  }
  take(normal);
}

template <class Take>
void TokenizerImpl::cut_by_stages(std::string_view text, const Take& take) const {
  std::vector<std::string_view> parts = {text};
  for (const text::Stage& stage : definition_.stages) {
    std::vector<std::string_view> next;
    for (const std::string_view part : parts) {
      for (const text::Found& one : text::joined_parts(text::find_all(stage, part), stage)) {
        if (!one.match) next.push_back(part.substr(one.begin, one.end - one.begin));
      }
    }
    parts = std::move(next);
  }
  const PreTokenization last =
      definition_.byte_level_pattern ? PreTokenization::kGpt2 : PreTokenization::kNone;
  for (const std::string_view part : parts) {
    if (definition_.add_prefix_space && !part.starts_with(' ')) {
      text::cut_by_pattern(last, " " + std::string(part), take);
    } else {
      text::cut_by_pattern(last, part, take);
    }
  }
}

template <class Take>
void TokenizerImpl::cut(std::string_view text, const Take& take) const {
  if (only_pattern_) {
    text::cut_by_pattern(*only_pattern_, text, take);
  } else {
    cut_by_stages(text, take);
  }
}

void TokenizerImpl::encode(std::string_view text, bool special, std::vector<text::Id>& ids) const {
  text::PieceEncoder encoder(*bpe_, ids, text.size());
  const auto take_piece = [&](std::string_view piece) { encoder.add(piece); };
  const auto take_normal = [&](std::string_view part) {
    if (part.empty()) return;
    if (normal_.empty()) return cut(part, take_piece);
    normal_.split(part, special, [&](std::string_view between, text::Id id) {
      if (id != text::kNoId) return encoder.add_id(id);
      cut(between, take_piece);
    });
  };
  if (text.empty()) return;
  if (plain_.empty()) return normalised(text, take_normal);
  plain_.split(text, special, [&](std::string_view between, text::Id id) {
    if (id != text::kNoId) return encoder.add_id(id);
    normalised(between, take_normal);
  });
}

void TokenizerImpl::pieces(std::string_view text,
                           const std::function<void(std::string_view)>& take) const {
  normalised(text, [&](std::string_view part) { cut(part, take); });
}

}  // namespace detail
}  // namespace tensorgrad::inline TENSORGRAD_ABI
