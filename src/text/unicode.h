// SPDX-License-Identifier: MIT
// Code points of text that may not be UTF-8: character kinds, normal forms, and symbols for
// arbitrary bytes. Uses the tables of utf8proc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorgrad::text {

// Sets of general categories of Unicode. A character can be in several.
enum Kind : std::uint8_t {
  kLetter = 1,       // L
  kNumber = 2,       // N
  kSpace = 4,        // White_Space
  kUpper = 8,        // may begin a word of o200k: Lu, Lt, Lm, Lo, M
  kLower = 16,       // may end a word of o200k: Ll, Lm, Lo, M
  kPunctuation = 32  // P, and ASCII punctuation
};

struct Character {
  char32_t code = 0;      // kNoCharacter if the byte does not begin a UTF-8 sequence
  std::uint8_t size = 1;  // bytes
  std::uint8_t kinds = 0;
};

inline constexpr char32_t kNoCharacter = 0xffffffff;

namespace detail {
// Kinds of the first 128 code points.
extern const std::array<std::uint8_t, 128> kAsciiKinds;
Character long_character_at(std::string_view text, std::size_t at);
}  // namespace detail

// Returns the character at byte `at` < text.size(). A byte that is not UTF-8 is a character of no
// kind.
inline Character character_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {byte, 1, detail::kAsciiKinds[byte]};
  return detail::long_character_at(text, at);
}

// True if a word character in the sense of regular expressions (\w) begins at byte `at`: a letter,
// mark, digit, connector or joiner.
bool word_begins_at(std::string_view text, std::size_t at);
// True if such a character ends right before byte `end`.
bool word_ends_at(std::string_view text, std::size_t end);

// Returns the end of the white space that begins at `at`.
std::size_t skip_spaces(std::string_view text, std::size_t at);
// Returns the start of the white space that ends at `end`.
std::size_t spaces_before(std::string_view text, std::size_t end);

enum class NormalForm : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };

bool is_ascii(std::string_view text);
// Returns the text in a normal form. Keeps bytes that are not UTF-8.
std::string normalized(std::string_view text, NormalForm form);

void append_utf8(std::string& out, char32_t code);
// Appends the lower case of a code point, which may be two code points.
void append_lower(std::string& out, char32_t code);
// Test for general categories: Mn; Mn, Mc or Me; Cc, Cf or Co.
bool is_nonspacing_mark(char32_t code);
bool is_mark(char32_t code);
bool is_control(char32_t code);
// Returns the end of the extended grapheme cluster that begins at byte `at` < text.size().
std::size_t grapheme_end(std::string_view text, std::size_t at);

// Converts to UTF-8. Each longest valid beginning of a sequence, or else each invalid byte, becomes
// U+FFFD.
std::string as_utf8(std::string_view bytes);
// Returns the number of trailing bytes that begin an incomplete sequence.
std::size_t unfinished_bytes(std::string_view bytes);

// Returns the character, in UTF-8, that represents a byte in vocabularies of byte-level BPE.
// Printable characters represent themselves; the others are U+0100 and up.
std::string_view byte_symbol(unsigned char byte);
// Converts symbols to bytes. Returns false if a character does not represent a byte.
bool bytes_of_symbols(std::string_view token, std::string& bytes);
// Converts bytes to symbols.
std::string symbols_of_bytes(std::string_view bytes);

}  // namespace tensorgrad::text
