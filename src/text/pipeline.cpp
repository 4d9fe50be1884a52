// SPDX-License-Identifier: MIT
#include "text/pipeline.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "text/patterns.h"
#include "text/unicode.h"

namespace tensorgrad::text {
namespace {

struct Found {
  std::size_t begin = 0, end = 0;
  bool match = false;  // matches the stage; after applying the behavior: to be removed
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

// Splits into runs of word characters, white space (the matches) and other characters.
std::vector<Found> split_into_words(std::string_view text) {
  std::vector<Found> all;
  int last = -1;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    const int kind = (c.kinds & kSpace) != 0 ? 0 : word_begins_at(text, at) ? 1 : 2;
    if (kind != last) all.push_back({at, at, kind == 0});
    last = kind;
    at += c.size;
    all.back().end = at;
  }
  return all;
}

std::vector<Found> literals_in(const AddedTokenSet& literals, std::string_view text) {
  std::vector<Found> all;
  if (text.empty()) return all;
  literals.split(text, false, [&](std::string_view part, Id id) {
    const auto begin = static_cast<std::size_t>(part.data() - text.data());
    all.push_back({begin, begin + part.size(), id != kNoId});
  });
  return all;
}

// Returns the text with the stage's literal in place of spaces.
std::string with_metaspace(const Stage& stage, std::string_view text, bool first) {
  std::string made;
  for (const char c : text) {
    if (c == ' ') {
      made += stage.literal;
    } else {
      made += c;
    }
  }
  const bool begins =
      stage.prefix == Stage::Prefix::kAlways || (stage.prefix == Stage::Prefix::kFirst && first);
  return (begins && !made.starts_with(stage.literal) ? stage.literal : "") + made;
}

// Returns the matches of a stage and the text between them; together they cover `text`.
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
    case Stage::What::kLiterals: return literals_in(*stage.matcher, text);
    case Stage::What::kDigits:
      return characters_that_are(text, [](const Character& c) { return (c.kinds & kNumber) != 0; });
    case Stage::What::kSpaces:
      return characters_that_are(text, [](const Character& c) { return (c.kinds & kSpace) != 0; });
    case Stage::What::kWords: return split_into_words(text);
    case Stage::What::kMetaspace: break;  // changes the text
    case Stage::What::kPunctuation:
      return characters_that_are(text,
                                 [](const Character& c) { return (c.kinds & kPunctuation) != 0; });
  }
  return all;
}

// Merges matches according to the stage's behavior. In the result, `match` marks parts to remove.
std::vector<Found> joined_parts(std::vector<Found> all, const Stage& stage) {
  if (stage.invert) {
    for (Found& one : all) one.match = !one.match;
  }
  if (stage.behaviour == Behaviour::kRemoved) return all;
  const bool backwards = stage.behaviour == Behaviour::kMergedWithNext;
  if (backwards) std::reverse(all.begin(), all.end());
  std::vector<Found> parts;
  bool before = false;  // whether the previous one was a match
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

// Returns the single pattern that determines the pieces of these stages, if there is one.
std::optional<PreTokenization> only_pattern_of(const Definition& definition) {
  if (definition.subword && !definition.stages.empty()) return std::nullopt;
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

// Returns the tokens that the text of a unigram model cannot become: special tokens, which are
// searched for before, and those of bytes.
std::set<Id> reserved_ids(const Definition& definition, const BpeModel& model) {
  std::set<Id> ids;
  for (const AddedToken& token : definition.added) {
    if (token.special) ids.insert(token.id);
  }
  for (int byte = 0; model.byte_fallback && byte < 256; ++byte)
    ids.insert(byte_token(model.tokens, static_cast<unsigned char>(byte)));
  return ids;
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
  if (definition_.subword && definition_.subword->kind != text::Subword::Kind::kBpe)
    subword_.emplace(*definition_.subword, model(), text::reserved_ids(definition_, model()));
  std::vector<AddedToken> plain, normal;
  std::int32_t largest = model().tokens.largest();
  // Special tokens come first, as in Hugging Face's tokenizers; this matters if two have the same
  // content.
  for (const bool special : {true, false}) {
    for (AddedToken token : definition_.added) {
      largest = std::max(largest, token.id);
      if (token.special != special) continue;
      if (!token.normalized) {
        plain.push_back(std::move(token));
        continue;
      }
      token.content = text::normalized(token.content, definition_.normal);
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
  const bool forms = definition_.normalizer.empty();  // normal forms do not change ASCII
  if (definition_.normal.empty() || (forms && text::is_ascii(text))) return take(text);
  take(text::normalized(text, definition_.normal));
}

template <class Take>
void TokenizerImpl::cut_by_stages(std::string_view text, bool first, const Take& take) const {
  std::vector<std::string_view> parts = {text};
  std::deque<std::string> made;  // owns parts that stages changed
  for (const text::Stage& stage : definition_.stages) {
    std::vector<std::string_view> next;
    for (std::string_view part : parts) {
      if (stage.what == text::Stage::What::kMetaspace) {
        const bool begins = first && part.data() == text.data();
        part = made.emplace_back(text::with_metaspace(stage, part, begins));
        text::Stage cut = stage;
        cut.what = text::Stage::What::kLiteral;
        if (!stage.split) {
          next.push_back(part);
          continue;
        }
        for (const text::Found& one : text::joined_parts(text::find_all(cut, part), cut))
          next.push_back(part.substr(one.begin, one.end - one.begin));
        continue;
      }
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
void TokenizerImpl::cut(std::string_view text, bool first, const Take& take) const {
  if (only_pattern_) {
    text::cut_by_pattern(*only_pattern_, text, take);
  } else {
    cut_by_stages(text, first, take);
  }
}

std::string TokenizerImpl::decoded(std::span<const text::Id> ids, bool skip_special,
                                   bool raw) const {
  std::vector<std::string> tokens;
  for (const text::Id id : ids) {
    const AddedToken* const token = added(id);
    if (token != nullptr && token->special && skip_special) continue;
    tokens.push_back(token != nullptr ? token->content : text::token_text(model(), id));
  }
  return text::decoded_text(std::move(tokens), definition_.subword->decoder, raw);
}

void TokenizerImpl::encode(std::string_view text, bool special, std::vector<text::Id>& ids) const {
  text::PieceEncoder encoder(*bpe_, ids, text.size());
  const auto take_piece = [&](std::string_view piece) {
    if (!subword_) return encoder.add(piece);
    if (!piece.empty()) subword_->encode(piece, ids);
  };
  bool first = true;  // whether the next part begins the text
  const auto take_normal = [&](std::string_view part) {
    if (part.empty()) return;
    if (normal_.empty()) return cut(part, std::exchange(first, false), take_piece);
    normal_.split(part, special, [&](std::string_view between, text::Id id) {
      const bool begins = std::exchange(first, false);
      if (id != text::kNoId) return encoder.add_id(id);
      cut(between, begins, take_piece);
    });
  };
  if (text.empty()) return;
  if (plain_.empty()) return normalised(text, take_normal);
  plain_.split(text, special, [&](std::string_view between, text::Id id) {
    if (id != text::kNoId) {
      first = false;
      return encoder.add_id(id);
    }
    normalised(between, take_normal);
  });
}

void TokenizerImpl::pieces(std::string_view text,
                           const std::function<void(std::string_view)>& take) const {
  normalised(text, [&](std::string_view part) { cut(part, true, take); });
}

}  // namespace detail
}  // namespace tensorgrad::inline TENSORGRAD_ABI
