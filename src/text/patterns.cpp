// SPDX-License-Identifier: MIT
// The regular expressions of well-known tokenizers as functions, which try the alternatives in
// order. In comments, L is a letter, N a number, s white space, as in \p{L} \p{N} \s.
#include "text/patterns.h"

#include <array>
#include <utility>

#include "text/unicode.h"

namespace tensorgrad::text {
namespace {

// As in the tokenizer.json files of GPT-2, GPT-4, Qwen2 and GPT-4o.
constexpr std::string_view kGpt2Text =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100kText =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Text =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200kText =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// As in current tiktoken. GPT-2 and GPT-4 have possessive quantifiers; white space at the end of
// the text is one piece (\s++$), even if it contains a line end.
constexpr std::string_view kGpt2Possessive =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)";
constexpr std::string_view kGpt2Grouped =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTiktokenCl100kText =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+)"
    R"(|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
// The same without {1,3}+, which the regex engine of Hugging Face's tokenizers interprets as a
// repetition of one to three digits.
constexpr std::string_view kCl100kTail =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+)"
    R"(|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";

struct Spelling {
  std::string_view expression;
  PreTokenization pattern;
};

constexpr std::array kSpellings = {
    Spelling{kGpt2Text, PreTokenization::kGpt2},
    Spelling{kGpt2Possessive, PreTokenization::kGpt2},
    Spelling{kGpt2Grouped, PreTokenization::kGpt2},
    Spelling{kCl100kText, PreTokenization::kCl100k},
    Spelling{kCl100kTail, PreTokenization::kTiktokenCl100k},
    Spelling{kTiktokenCl100kText, PreTokenization::kTiktokenCl100k},
    Spelling{kQwen2Text, PreTokenization::kQwen2},
    Spelling{kO200kText, PreTokenization::kO200k},
};

// Reads characters of a text. Beyond the end, returns a character of no kind and size 0.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  [[nodiscard]] Character at(std::size_t i) const {
    return i < text_.size() ? character_at(text_, i) : Character{kNoCharacter, 0, 0};
  }
  [[nodiscard]] std::size_t size() const { return text_.size(); }

  // Returns the end of the longest run of characters from `i` for which `is` is true.
  template <class Is>
  [[nodiscard]] std::size_t run(std::size_t i, const Is& is) const {
    while (i < text_.size()) {
      const Character c = character_at(text_, i);
      if (!is(c)) break;
      i += c.size;
    }
    return i;
  }

 private:
  std::string_view text_;
};

bool is_letter(const Character& c) { return (c.kinds & kLetter) != 0; }
bool is_number(const Character& c) { return (c.kinds & kNumber) != 0; }
bool is_space(const Character& c) { return (c.kinds & kSpace) != 0; }
bool is_upper(const Character& c) { return (c.kinds & kUpper) != 0; }
bool is_lower(const Character& c) { return (c.kinds & kLower) != 0; }
bool is_other(const Character& c) { return (c.kinds & (kLetter | kNumber | kSpace)) == 0; }
bool is_line_end(const Character& c) { return c.code == '\r' || c.code == '\n'; }
bool is_line_end_or_slash(const Character& c) { return is_line_end(c) || c.code == '/'; }
// Matches [^\r\n\p{L}\p{N}]. False beyond the end.
bool may_lead(const Character& c) {
  return c.size > 0 && (c.kinds & (kLetter | kNumber)) == 0 && !is_line_end(c);
}

// Case-folds ASCII letters and the long s, which folds to s.
char32_t folded(char32_t code) {
  if (code >= 'A' && code <= 'Z') return code + ('a' - 'A');
  return code == 0x17f ? U's' : code;
}

// Returns the end of 's 't 're 've 'm 'll 'd at `i`, or `i` if there is no match.
template <bool kAnyCase>
std::size_t contraction(const Reader& text, std::size_t i) {
  if (text.at(i).code != '\'') return i;
  const auto letter = [&](const Character& c) { return kAnyCase ? folded(c.code) : c.code; };
  const Character first = text.at(i + 1);
  const std::size_t behind = i + 1 + first.size;
  switch (letter(first)) {
    case 's':
    case 't':
    case 'm':
    case 'd': return behind;
    case 'r':
    case 'v': return letter(text.at(behind)) == 'e' ? behind + 1 : i;
    case 'l': return letter(text.at(behind)) == 'l' ? behind + 1 : i;
    default: return i;
  }
}

// Matches \s+(?!\S)|\s+ if `i` is white space: all but the last character, which belongs to what
// follows.
std::size_t spaces(const Reader& text, std::size_t i) {
  std::size_t last = i, end = i;
  while (is_space(text.at(end))) {
    last = end;
    end += text.at(end).size;
  }
  return end == text.size() || last == i ? end : last;
}

// Matches \s*[\r\n]+ if `i` is white space: up to the last line end of the run. Returns `i` if
// there is no match.
std::size_t spaces_to_line_end(const Reader& text, std::size_t i) {
  std::size_t found = i;
  for (std::size_t end = i;;) {
    const Character c = text.at(end);
    if (!is_space(c)) return found;
    end += c.size;
    if (is_line_end(c)) found = end;
  }
}

// Matches at most `most` numbers.
std::size_t numbers(const Reader& text, std::size_t i, int most) {
  for (; most > 0 && is_number(text.at(i)); --most) i += text.at(i).size;
  return i;
}

// Characters that have a meaning in regular expressions, and those that Python's re.escape() and
// others escape as well.
constexpr std::string_view kOperators = "()[]{}?*+|^$.";
constexpr std::string_view kEscaped = "()[]{}?*+|^$.\\-&~#/ \t\n\r\v\f";

std::size_t gpt2_piece(const Reader& text, std::size_t at) {
  if (const std::size_t end = contraction<false>(text, at); end > at) return end;
  const Character first = text.at(at);
  const std::size_t body = first.code == ' ' ? at + 1 : at;
  const Character c = first.code == ' ' ? text.at(body) : first;
  if (is_letter(c)) return text.run(body, is_letter);
  if (is_number(c)) return text.run(body, is_number);
  if (c.size > 0 && is_other(c)) return text.run(body, is_other);
  return spaces(text, at);
}

// Matches the alternatives after letters in the expressions of GPT-4 and later.
template <class Tail>
std::size_t after_letters(const Reader& text, std::size_t at, int digits, bool whole_tail,
                          const Tail& in_tail) {
  const Character first = text.at(at);
  if (is_number(first)) return numbers(text, at, digits);
  const std::size_t body = first.code == ' ' ? at + 1 : at;
  const Character c = first.code == ' ' ? text.at(body) : first;
  if (c.size > 0 && is_other(c)) return text.run(text.run(body, is_other), in_tail);
  if (whole_tail && text.run(at, is_space) == text.size()) return text.size();
  if (const std::size_t end = spaces_to_line_end(text, at); end > at) return end;
  return spaces(text, at);
}

std::size_t cl100k_piece(const Reader& text, std::size_t at, int digits, bool whole_tail) {
  if (const std::size_t end = contraction<true>(text, at); end > at) return end;
  const Character first = text.at(at);
  if (is_letter(first)) return text.run(at, is_letter);
  if (may_lead(first) && is_letter(text.at(at + first.size))) {
    return text.run(at + first.size, is_letter);
  }
  return after_letters(text, at, digits, whole_tail, is_line_end);
}

// Matches [upper]*[lower]+ from `i`. Returns `i` if there is no match. A character in both classes
// at the end of the first run can belong to the second.
std::size_t small_word(const Reader& text, std::size_t i) {
  std::size_t upper = i, shared = i;  // `shared`: end of the last one that is also lower
  for (Character c = text.at(i); is_upper(c); c = text.at(upper)) {
    upper += c.size;
    if (is_lower(c)) shared = upper;
  }
  const std::size_t end = text.run(upper, is_lower);
  return end > upper ? end : shared;
}

// Matches [upper]+[lower]*. Used if small_word() does not match.
std::size_t large_word(const Reader& text, std::size_t i) { return text.run(i, is_upper); }

std::size_t o200k_piece(const Reader& text, std::size_t at) {
  const Character first = text.at(at);
  for (const auto word : {small_word, large_word}) {
    if (may_lead(first)) {
      const std::size_t body = at + first.size;
      if (const std::size_t end = word(text, body); end > body) {
        return contraction<true>(text, end);
      }
    }
    if (const std::size_t end = word(text, at); end > at) return contraction<true>(text, end);
  }
  return after_letters(text, at, 3, false, is_line_end_or_slash);
}

}  // namespace

std::string_view expression_of(PreTokenization pattern) {
  for (const Spelling& known : kSpellings) {
    if (known.pattern == pattern) return known.expression;
  }
  return "";
}

std::optional<PreTokenization> pattern_of(std::string_view expression) {
  for (const Spelling& known : kSpellings) {
    if (known.expression == expression) return known.pattern;
  }
  return std::nullopt;
}

std::string expression_of_literals(const std::vector<std::string>& literals) {
  std::string expression;
  for (const std::string& literal : literals) {
    if (!expression.empty()) expression += '|';
    for (const char c : literal) {
      if (kEscaped.find(c) != std::string_view::npos) expression += '\\';
      expression += c;
    }
  }
  return expression;
}

std::optional<std::vector<std::string>> literals_of(std::string_view expression) {
  std::vector<std::string> literals(1);
  const auto good = [](const std::string& literal) {
    return !literal.empty() && literal.size() <= kLongestLiteral;
  };
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '|') {
      if (!good(literals.back())) return std::nullopt;
      literals.emplace_back();
      continue;
    }
    const bool escaped = c == '\\';
    if (escaped && ++i == expression.size()) return std::nullopt;
    // Letters and digits after a backslash are classes and references.
    const bool special = kEscaped.find(expression[i]) != std::string_view::npos;
    if (escaped ? !special : kOperators.find(c) != std::string_view::npos) return std::nullopt;
    literals.back() += expression[i];
  }
  if (!good(literals.back())) return std::nullopt;
  return literals;
}

std::string_view known_patterns() { return "GPT-2, cl100k (GPT-4, Llama 3), Qwen2 or o200k"; }

std::size_t piece_end(PreTokenization pattern, std::string_view text, std::size_t at) {
  const Reader reader(text);
  switch (pattern) {
    case PreTokenization::kNone: return text.size();
    case PreTokenization::kGpt2: return gpt2_piece(reader, at);
    case PreTokenization::kCl100k: return cl100k_piece(reader, at, 3, false);
    case PreTokenization::kTiktokenCl100k: return cl100k_piece(reader, at, 3, true);
    case PreTokenization::kQwen2: return cl100k_piece(reader, at, 1, false);
    case PreTokenization::kO200k: return o200k_piece(reader, at);
  }
  return text.size();
}

}  // namespace tensorgrad::text
