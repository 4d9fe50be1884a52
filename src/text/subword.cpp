// SPDX-License-Identifier: MIT
#include "text/subword.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "io/text.h"
#include "tensorgrad/error.h"
#include "text/unicode.h"

namespace tensorgrad::text {
namespace {

constexpr std::string_view kReplacementCharacter = "\ufffd";
constexpr std::size_t kByteTokenSize = 6;  // <0xNN>

std::string byte_name(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4U], kDigits[byte & 15U], '>'};
}

// Returns the byte of a token <0xNN>, or -1.
int byte_of_token(std::string_view token) {
  if (token.size() != kByteTokenSize || !token.starts_with("<0x") || token.back() != '>') return -1;
  unsigned byte = 0;
  const char* const end = token.data() + kByteTokenSize - 1;
  const auto [stop, error] = std::from_chars(token.data() + 3, end, byte, 16);
  return error == std::errc() && stop == end ? static_cast<int>(byte) : -1;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

void clean_up(std::string& text) {
  constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) {
    replace_all(text, from, to);
    if (std::string_view(from) == " 'm") replace_all(text, " do not", " don't");
  }
}

std::vector<std::string> bytes_joined(const std::vector<std::string>& tokens, bool raw) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    bool good = true;
    for (std::size_t at = 0; at < bytes.size() && good;) {
      const std::size_t size = io::utf8_length(std::string_view(bytes).substr(at));
      good = size > 0;
      at += size;
    }
    if (good || raw) {
      out.push_back(bytes);
    } else {
      for (std::size_t i = 0; i < bytes.size(); ++i) out.emplace_back(kReplacementCharacter);
    }
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    if (const int byte = byte_of_token(token); byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      flush();
      out.push_back(token);
    }
  }
  flush();
  return out;
}

void strip(std::string& token, const DecodeStep& step) {
  std::size_t begin = 0, end = token.size();
  const std::size_t size = step.from.size();
  for (std::size_t i = 0; i < step.start && token.compare(begin, size, step.from) == 0; ++i)
    begin += size;
  for (std::size_t i = 0;
       i < step.stop && end - begin >= size && token.compare(end - size, size, step.from) == 0;
       ++i) {
    end -= size;
  }
  token = token.substr(begin, end - begin);
}

void apply(const DecodeStep& step, std::vector<std::string>& tokens, bool raw) {
  using What = DecodeStep::What;
  if (step.what == What::kByteFallback) {
    tokens = bytes_joined(tokens, raw);
    return;
  }
  if (step.what == What::kFuse) {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens = {std::move(all)};
    return;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    switch (step.what) {
      case What::kMetaspace:
        replace_all(token, step.from, i == 0 && !step.keeps_first ? "" : " ");
        break;
      case What::kStrip: strip(token, step); break;
      case What::kReplace: replace_all(token, step.from, step.to); break;
      case What::kWordPiece:
        if (i != 0) {
          token = token.starts_with(step.from) ? token.substr(step.from.size()) : " " + token;
        }
        if (step.cleanup) clean_up(token);
        break;
      case What::kByteFallback:
      case What::kFuse: break;
    }
  }
}

}  // namespace

std::string decoded_text(std::vector<std::string> tokens, const std::vector<DecodeStep>& steps,
                         bool raw) {
  std::string text;
  for (const DecodeStep& step : steps) apply(step, tokens, raw);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (steps.empty() && i > 0) text += ' ';
    text += tokens[i];
  }
  return text;
}

Id byte_token(const TokenTable& tokens, unsigned char byte) { return tokens.find(byte_name(byte)); }

bool is_byte_token(std::string_view token) {
  const int byte = byte_of_token(token);
  return byte >= 0 && byte_name(static_cast<unsigned char>(byte)) == token;
}

SubwordEncoder::SubwordEncoder(const Subword& subword, const BpeModel& model, std::set<Id> reserved)
    : subword_(subword), model_(model), reserved_(std::move(reserved)) {
  if (subword.kind != Subword::Kind::kUnigram) return;
  for (const Id id : model.tokens.ids()) {
    const std::string_view token = model.tokens.bytes_of(id);
    if (!token.empty() && !reserved_.contains(id)) sorted_.emplace_back(token, id);
  }
  std::sort(sorted_.begin(), sorted_.end());
  constexpr double kPenalty = 10;  // as in SentencePiece
  unknown_score_ = *std::min_element(subword.scores.begin(), subword.scores.end()) - kPenalty;
}

void SubwordEncoder::encode(std::string_view piece, std::vector<Id>& ids) const {
  if (subword_.kind == Subword::Kind::kUnigram) return encode_unigram(piece, ids);
  encode_words(piece, ids);
}

Id SubwordEncoder::unknown(std::string_view symbol) const {
  if (model_.unk) return *model_.unk;
  throw UserError("tokenizer: the vocabulary has neither a token for " + io::in_quotes(symbol) +
                  " nor an unknown token");
}

template <class Take>
void SubwordEncoder::prefixes(std::string_view text, const Take& take) const {
  const auto byte = [](char c) { return static_cast<unsigned char>(c); };
  auto first = sorted_.begin(), last = sorted_.end();
  for (std::size_t length = 0; length < text.size(); ++length) {
    // Tokens that match the first `length` bytes of the text and are longer.
    first = std::lower_bound(first, last, text[length], [&](const auto& token, char c) {
      return byte(token.first[length]) < byte(c);
    });
    last = std::upper_bound(first, last, text[length], [&](char c, const auto& token) {
      return byte(c) < byte(token.first[length]);
    });
    if (first == last) return;
    if (first->first.size() != length + 1) continue;
    take(length + 1, first->second);
    if (++first == last) return;
  }
}

// Finds the most likely segmentation (Kudo 2018) by dynamic programming over prefixes.
void SubwordEncoder::encode_unigram(std::string_view piece, std::vector<Id>& ids) const {
  constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  struct Node {
    double score = 0;
    std::size_t begin = kNowhere;
    Id id = kNoId;
  };
  std::vector<Node> ends(piece.size() + 1);
  const auto offer = [&](std::size_t begin, std::size_t end, double score, Id id) {
    Node& node = ends[end];
    if (node.begin == kNowhere || score > node.score) node = {score, begin, id};
  };
  for (std::size_t at = 0; at < piece.size();) {
    const double score = ends[at].score;
    const std::size_t size = character_at(piece, at).size;
    bool single = false;
    prefixes(piece.substr(at), [&](std::size_t length, Id id) {
      offer(at, at + length, score + subword_.scores[static_cast<std::size_t>(id)], id);
      single = single || length == size;
    });
    if (!single) offer(at, at + size, score + unknown_score_, model_.unk ? *model_.unk : kNoId);
    at += size;
  }
  // Collect the parts from the end; merge consecutive unknown characters.
  std::vector<std::string_view> parts;
  bool unknown_before = false;
  for (std::size_t end = piece.size(); end > 0; end = ends[end].begin) {
    const Node& node = ends[end];
    const bool is_unknown = node.id == kNoId || (model_.unk && node.id == *model_.unk);
    const std::string_view part = piece.substr(node.begin, end - node.begin);
    if (is_unknown && unknown_before) {
      parts.back() = piece.substr(node.begin, parts.back().size() + part.size());
    } else {
      parts.push_back(part);
    }
    unknown_before = is_unknown;
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (const Id id = model_.tokens.find(*part); id != kNoId && !reserved_.contains(id)) {
      ids.push_back(id);
      continue;
    }
    std::vector<Id> bytes;
    for (const char c : *part) {
      const Id id =
          model_.byte_fallback ? byte_token(model_.tokens, static_cast<unsigned char>(c)) : kNoId;
      if (id == kNoId) break;
      bytes.push_back(id);
    }
    if (bytes.size() != part->size()) bytes = {unknown(*part)};
    ids.insert(ids.end(), bytes.begin(), bytes.end());
  }
}

// Takes the longest matching token repeatedly. If that fails, the whole word is unknown.
void SubwordEncoder::encode_words(std::string_view piece, std::vector<Id>& ids) const {
  std::vector<std::size_t> edges = {0};  // boundaries of characters
  while (edges.back() < piece.size())
    edges.push_back(edges.back() + character_at(piece, edges.back()).size);
  const std::size_t before = ids.size(), count = edges.size() - 1;
  bool good = count <= subword_.longest;
  std::string token;
  for (std::size_t begin = 0; good && begin < count;) {
    std::size_t end = count;
    Id id = kNoId;
    for (; end > begin; --end) {
      token = begin > 0 ? subword_.prefix : "";
      token += piece.substr(edges[begin], edges[end] - edges[begin]);
      id = model_.tokens.find(token);
      if (id != kNoId) break;
    }
    good = id != kNoId;
    if (good) ids.push_back(id);
    begin = end;
  }
  if (good) return;
  ids.resize(before);
  ids.push_back(unknown(piece));
}

}  // namespace tensorgrad::text
