// SPDX-License-Identifier: MIT
// Code points of text that may be no UTF-8: what kind of character each is, normal forms, and what
// stands for bytes that are none. The tables are those of utf8proc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorgrad::text {

// Sets of Unicode's general categories; a character is in any number of them.
enum Kind : std::uint8_t {
  kLetter = 1,       // L
  kNumber = 2,       // N
  kSpace = 4,        // White_Space
  kUpper = 8,        // what may begin a word of o200k: Lu, Lt, Lm, Lo, M
  kLower = 16,       // what may end one: Ll, Lm, Lo, M
  kPunctuation = 32  // P, and what is punctuation in ASCII
};

struct Character {
  char32_t code = 0;      // kNoCharacter where the byte begins no UTF-8 sequence
  std::uint8_t size = 1;  // bytes
  std::uint8_t kinds = 0;
};

inline constexpr char32_t kNoCharacter = 0xffffffff;

namespace detail {
// The kinds of the first 128 code points.
extern const std::array<std::uint8_t, 128> kAsciiKinds;
Character long_character_at(std::string_view text, std::size_t at);
}  // namespace detail

// The character at byte `at`, which is in `text`. A byte that is no UTF-8 is one of no kind.
inline Character character_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {byte, 1, detail::kAsciiKinds[byte]};
  return detail::long_character_at(text, at);
}

// Whether a character begins at byte `at` that is part of a word as regular expressions have it
// (\w): alphabetic, a mark, a digit, a connector, or one that joins.
bool word_begins_at(std::string_view text, std::size_t at);
// Whether one ends right before byte `end`.
bool word_ends_at(std::string_view text, std::size_t end);

// The first byte behind the white space that begins at `at`.
std::size_t skip_spaces(std::string_view text, std::size_t at);
// The first byte of the white space that ends at `end`.
std::size_t spaces_before(std::string_view text, std::size_t end);

enum class NormalForm : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };

bool is_ascii(std::string_view text);
// The text in a normal form; bytes that are no UTF-8 stay as they are.
std::string normalized(std::string_view text, NormalForm form);

// Appends a code point.
void append_utf8(std::string& out, char32_t code);
// Appends the lower case of a code point, which may be two.
void append_lower(std::string& out, char32_t code);
// General categories: Mn; Mn, Mc or Me; Cc, Cf or Co.
bool is_nonspacing_mark(char32_t code);
bool is_mark(char32_t code);
bool is_control(char32_t code);
// Where the extended grapheme cluster ends that begins at byte `at` < text.size().
std::size_t grapheme_end(std::string_view text, std::size_t at);

// UTF-8: what is none (each longest beginning of a sequence, else each byte) becomes U+FFFD.
std::string as_utf8(std::string_view bytes);
// How many bytes at the end of `bytes` are the beginning of a sequence that more may complete.
std::size_t unfinished_bytes(std::string_view bytes);

// The character that stands for a byte in vocabularies of byte-level BPE, in UTF-8: printable ones
// stand for themselves, the others are U+0100 and on.
std::string_view byte_symbol(unsigned char byte);
// The bytes that `token` stands for; false where one of its characters stands for none.
bool bytes_of_symbols(std::string_view token, std::string& bytes);
// The symbols of all bytes.
std::string symbols_of_bytes(std::string_view bytes);

}  // namespace tensorgrad::text
