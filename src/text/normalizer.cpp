// SPDX-License-Identifier: MIT
#include "text/normalizer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tensorgrad/error.h"

namespace tensorgrad::text {
namespace {

// Appends the output of `change(character, out)` for each character. Keeps bytes that are not
// UTF-8.
template <class Change>
std::string each_character(std::string_view text, const Change& change) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (c.code == kNoCharacter) {
      out += text[at];
    } else {
      change(c, out);
    }
    at += c.size;
  }
  return out;
}

std::string without(std::string_view text, bool (*is)(char32_t)) {
  return each_character(text, [&](const Character& c, std::string& out) {
    if (!is(c.code)) append_utf8(out, c.code);
  });
}

std::string lowered(std::string_view text) {
  return each_character(text,
                        [](const Character& c, std::string& out) { append_lower(out, c.code); });
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = std::min(text.find(from, at), text.size());
    out += text.substr(at, found - at);
    if (found == text.size()) break;
    out += to;
    at = found + from.size();
  }
  return out;
}

std::string with_spaces_replaced(std::string_view text, const NormalStep& step) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = step.least > 1 ? std::min(text.find_first_not_of(' ', at), text.size())
                                     : skip_spaces(text, at);
    if (end > at && end - at >= step.least) {
      out += step.to;
    } else {
      end = std::max(end, at + character_at(text, at).size);
      out += text.substr(at, end - at);
    }
    at = end;
  }
  return out;
}

std::string with_ends_replaced(std::string_view text, const NormalStep& step) {
  const std::string_view from = step.from;
  bool left = false, right = false;
  for (; step.left && text.starts_with(from); left = true) text.remove_prefix(from.size());
  for (; step.right && text.ends_with(from); right = true) text.remove_suffix(from.size());
  return (left ? step.to : "") + std::string(text) + (right ? step.to : "");
}

std::string stripped(std::string_view text, bool left, bool right) {
  if (left) text.remove_prefix(skip_spaces(text, 0));
  if (right) text = text.substr(0, spaces_before(text, text.size()));
  return std::string(text);
}

// CJK ideographs as defined by BERT, without kana and hangul.
bool is_ideograph(char32_t code) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
      {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  return std::any_of(std::begin(kRanges), std::end(kRanges), [&](const auto& range) {
    return code >= range.first && code <= range.second;
  });
}

std::string bert(std::string_view given, const NormalStep& step) {
  std::string text(given);
  if (step.clean) {
    text = each_character(text, [](const Character& c, std::string& out) {
      const bool space = c.code == '\t' || c.code == '\n' || c.code == '\r' || c.kinds & kSpace;
      const bool usual_space = c.code == '\t' || c.code == '\n' || c.code == '\r';
      if (c.code == 0 || c.code == 0xfffd || (!usual_space && is_control(c.code))) return;
      append_utf8(out, space ? U' ' : c.code);
    });
  }
  if (step.ideographs) {
    text = each_character(text, [](const Character& c, std::string& out) {
      const bool apart = is_ideograph(c.code);
      if (apart) out += ' ';
      append_utf8(out, c.code);
      if (apart) out += ' ';
    });
  }
  if (step.accents) text = without(normalized(text, NormalForm::kNfd), is_nonspacing_mark);
  return step.lower ? lowered(text) : text;
}

std::string after_step(std::string_view text, const NormalStep& step) {
  switch (step.what) {
    case NormalStep::What::kForm: return normalized(text, step.form);
    case NormalStep::What::kLowercase: return lowered(text);
    case NormalStep::What::kStripAccents: return without(text, is_mark);
    case NormalStep::What::kPrepend: return (text.empty() ? "" : step.to) + std::string(text);
    case NormalStep::What::kReplace: return replaced(text, step.from, step.to);
    case NormalStep::What::kReplaceSpaces: return with_spaces_replaced(text, step);
    case NormalStep::What::kReplaceEnds: return with_ends_replaced(text, step);
    case NormalStep::What::kStrip: return stripped(text, step.left, step.right);
    case NormalStep::What::kBert: return bert(text, step);
    case NormalStep::What::kCharacterMap: return step.map->apply(text);
  }
  return std::string(text);
}

}  // namespace

// Units have the format of darts-clone: a label, an offset and whether a value follows.
CharacterMap::CharacterMap(std::string bytes, const std::string& where, Match match)
    : bytes_(std::move(bytes)), match_(match) {
  std::uint32_t size = 0;
  if (bytes_.size() >= sizeof size) std::memcpy(&size, bytes_.data(), sizeof size);
  if (size == 0 || size % sizeof(std::uint32_t) != 0 || size > bytes_.size() - sizeof size) {
    throw IoError(where + ": expected the size of a double array and that many bytes");
  }
  units_ = size / sizeof(std::uint32_t);
  replacements_ = std::string_view(bytes_).substr(sizeof size + size);
}

// Returns 0, which matches no byte, beyond the end.
std::uint32_t CharacterMap::unit(std::size_t at) const {
  std::uint32_t unit = 0;
  if (at < units_) std::memcpy(&unit, bytes_.data() + (at + 1) * sizeof unit, sizeof unit);
  return unit;
}

std::size_t CharacterMap::replace(std::string_view part, std::string& out) const {
  const auto offset = [](std::uint32_t u) -> std::size_t {
    return static_cast<std::size_t>(u >> 10) << ((u & 0x200U) >> 6);
  };
  std::size_t node = offset(unit(0)), size = 0, found = 0;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const auto byte = static_cast<unsigned char>(part[i]);
    if (byte == 0) break;
    node ^= byte;
    const std::uint32_t here = unit(node);
    if ((here & 0x800000ffU) != byte) break;
    node ^= offset(here);
    if ((here & 0x100U) == 0) continue;
    const std::size_t at = unit(node) & 0x7fffffffU;
    if (at > replacements_.size()) break;
    size = i + 1;
    found = at;
    if (match_ == Match::kClusters) break;
  }
  if (size > 0) out += replacements_.substr(found, replacements_.find('\0', found) - found);
  return size;
}

// Same as the crate spm_precompiled, which Hugging Face's tokenizers use: replaces a cluster of a
// few bytes as a whole, otherwise each of its characters.
std::string CharacterMap::with_clusters_replaced(std::string_view text) const {
  constexpr std::size_t kShortCluster = 6;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view cluster = text.substr(at, grapheme_end(text, at) - at);
    at += cluster.size();
    if (cluster.size() < kShortCluster && replace(cluster, out) > 0) continue;
    for (std::size_t i = 0; i < cluster.size();) {
      const std::string_view one = cluster.substr(i, character_at(cluster, i).size);
      if (replace(one, out) == 0) out += one;
      i += one.size();
    }
  }
  return out;
}

std::string CharacterMap::apply(std::string_view text) const {
  if (match_ == Match::kClusters) return with_clusters_replaced(text);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t size = replace(text.substr(at), out);
    if (size == 0) {
      size = character_at(text, at).size;
      out += text.substr(at, size);
    }
    at += size;
  }
  return out;
}

std::string normalized(std::string_view text, const std::vector<NormalStep>& steps) {
  std::string result(text);
  for (const NormalStep& step : steps) result = after_step(result, step);
  return result;
}

}  // namespace tensorgrad::text
