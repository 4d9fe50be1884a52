// SPDX-License-Identifier: MIT
// Text as a sequence of character numbers.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "io/gzip.h"
#include "io/text.h"
#include "tensorgrad/data/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Calls `take(character, byte)` for the characters of `text` in order.
template <class Take>
void for_each_character(std::string_view text, std::string_view name, const Take& take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = io::utf8_length(text.substr(at));
    if (n == 0) throw IoError(std::string(name) + ": invalid UTF-8 at byte " + std::to_string(at));
    take(text.substr(at, n), at);
    at += n;
  }
}

}  // namespace

CharVocabulary::CharVocabulary(std::vector<std::string> symbols) : symbols_(std::move(symbols)) {
  for (const std::string& symbol : symbols_) {
    const bool one = !symbol.empty() && io::utf8_length(symbol) == symbol.size();
    const auto number = static_cast<std::int32_t>(numbers_.size());
    if (one && numbers_.emplace(symbol, number).second) continue;
    throw IoError("vocabulary: " + io::in_quotes(symbol) +
                  (one ? " occurs twice" : " is not a single UTF-8 character"));
  }
}

CharVocabulary CharVocabulary::of(std::string_view text, std::string_view name) {
  std::set<std::string_view> seen;
  for_each_character(text, name, [&](std::string_view c, std::size_t) { seen.insert(c); });
  return CharVocabulary(std::vector<std::string>(seen.begin(), seen.end()));
}

std::vector<std::int32_t> CharVocabulary::encode(std::string_view text,
                                                 std::string_view name) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for_each_character(text, name, [&](std::string_view c, std::size_t at) {
    const auto found = numbers_.find(c);
    if (found == numbers_.end()) {
      throw IoError(std::string(name) + ": " + io::in_quotes(c) + " at byte " + std::to_string(at) +
                    " is not in the vocabulary");
    }
    tokens.push_back(found->second);
  });
  return tokens;
}

std::string CharVocabulary::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= size()) {
      throw IoError("vocabulary: token " + std::to_string(token) +
                    " is out of range; expected 0 to " + std::to_string(size() - 1));
    }
    text += symbols_[static_cast<std::size_t>(token)];
  }
  return text;
}

TextData read_text(const FileSource& source, const TextOptions& options) {
  const io::Content content = io::read_inflated(source, options.max_bytes, options.max_expansion);
  std::string_view text = content.text();
  const std::string& name = source.name();
  if (!(options.holdout >= 0 && options.holdout < 1)) {
    throw IoError(name + ": holdout must be in [0, 1), got " + std::to_string(options.holdout));
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.empty()) throw IoError(name + ": is empty; expected text");
  TextData data{options.vocabulary.empty() ? CharVocabulary::of(text, name)
                                           : CharVocabulary(options.vocabulary),
                {},
                {}};
  data.train = data.vocabulary.encode(text, name);
  const auto held =
      static_cast<std::ptrdiff_t>(options.holdout * static_cast<double>(data.train.size()));
  data.validation.assign(data.train.end() - held, data.train.end());
  data.train.resize(data.train.size() - static_cast<std::size_t>(held));
  return data;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
