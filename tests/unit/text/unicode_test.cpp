// SPDX-License-Identifier: MIT
// Character classes, normal forms, and invalid UTF-8.
#include "text/unicode.h"

#include <gtest/gtest.h>

#include "unit/io/io_test_util.h"

namespace tensorgrad::text {
namespace {

std::uint8_t kinds_of(std::string_view text) { return character_at(text, 0).kinds; }

TEST(TextUnicode, classifies_letters_numbers_and_spaces_of_any_script) {
  for (const char* letter :
       {"a", "Z", "\u00e9", "\u4e2d", "\u3042", "\ud55c", "\u05d0", "\u02b0"}) {
    EXPECT_EQ(kinds_of(letter) & (kLetter | kNumber | kSpace), kLetter) << letter;
  }
  for (const char* number : {"0", "\u0663", "\u00bd", "\u2163", "\u00b2", "\U0001d7d8"}) {
    EXPECT_EQ(kinds_of(number), kNumber) << number;
  }
  for (const char* space : {" ", "\t", "\n", "\v", "\f", "\r", "\u0085", "\u00a0", "\u1680",
                            "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"}) {
    EXPECT_EQ(kinds_of(space), kSpace) << space;
  }
  // None of a zero-width space, a byte order mark, a record separator and a vowel separator has a
  // class.
  for (const char* other : {"\u200b", "\ufeff", "\x1c", "\u180e", "\u0080", "\ue000", "\uffff"}) {
    EXPECT_EQ(kinds_of(other), 0) << other;
  }
  EXPECT_EQ(kinds_of("\u0301"), kUpper | kLower);
  EXPECT_EQ(kinds_of("A"), kLetter | kUpper);
  EXPECT_EQ(kinds_of("\u01c5"), kLetter | kUpper);
  EXPECT_EQ(kinds_of("a"), kLetter | kLower);
  EXPECT_EQ(kinds_of("$"), kPunctuation);
  EXPECT_EQ(kinds_of("\u20ac"), 0);
}

TEST(TextUnicode, invalid_utf8_byte_is_a_character_of_no_class) {
  for (const std::string bad :
       {"\xff", "\x80", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    const Character c = character_at(bad, 0);
    EXPECT_EQ(c.code, kNoCharacter);
    EXPECT_EQ(c.size, 1);
    EXPECT_EQ(c.kinds, 0);
  }
  EXPECT_EQ(character_at("\xf4\x8f\xbf\xbf", 0).code, 0x10ffffU);
}

TEST(TextUnicode, finds_the_bounds_of_words) {
  for (const char* inside : {"a", "1", "_", "\u00e9", "\u0301", "\u2160", "\u24b6", "\u200d"}) {
    EXPECT_TRUE(word_begins_at(inside, 0)) << inside;
    EXPECT_TRUE(word_ends_at(inside, std::string_view(inside).size())) << inside;
  }
  for (const std::string outside :
       {"-", " ", "\u00b2", "\u20ac", "\xff", "\xe4\xb8", "\U0001f600"}) {
    EXPECT_FALSE(word_begins_at(outside, 0)) << outside;
    EXPECT_FALSE(word_ends_at(outside, outside.size())) << outside;
  }
  EXPECT_FALSE(word_begins_at("", 0));
  EXPECT_FALSE(word_ends_at("a", 0));
}

TEST(TextUnicode, skips_white_space_in_both_directions) {
  const std::string text =
      "a \u3000\n\u0085"
      "b";
  EXPECT_EQ(skip_spaces(text, 1), text.size() - 1);
  EXPECT_EQ(spaces_before(text, text.size() - 1), 1U);
  EXPECT_EQ(skip_spaces(text, 0), 0U);
  EXPECT_EQ(spaces_before(text, 1), 1U);
  EXPECT_EQ(spaces_before(" \t", 2), 0U);
  EXPECT_EQ(skip_spaces(" \t", 0), 2U);
  EXPECT_EQ(spaces_before("\xe3\x80", 2), 2U);
}

TEST(TextUnicode, normalizes_text) {
  EXPECT_EQ(normalized("cafe\u0301 A\u030a", NormalForm::kNfc), "caf\u00e9 \u00c5");
  EXPECT_EQ(normalized("caf\u00e9", NormalForm::kNfd), "cafe\u0301");
  EXPECT_EQ(normalized("\ufb01n\u00b2 \uff76", NormalForm::kNfkc), "fin2 \u30ab");
  EXPECT_EQ(normalized("\ufb01\u00e9", NormalForm::kNfkd), "fie\u0301");
  EXPECT_EQ(normalized("\u1112\u1161\u11ab", NormalForm::kNfc), "\ud55c");
  EXPECT_EQ(normalized(std::string("a\0e\u0301", 5), NormalForm::kNfc),
            std::string("a\0\u00e9", 4));
  EXPECT_EQ(normalized("", NormalForm::kNfc), "");
  EXPECT_EQ(normalized("plain", NormalForm::kNfkd), "plain");
}

// utf8proc orders combining marks in quadratic time. It takes 19 s for half of these.
TEST(TextUnicode, orders_long_runs_of_marks) {
  constexpr int kMarks = 100'000;
  const auto repeated = [](const std::string& text) {
    std::string all;
    for (int i = 0; i < kMarks; ++i) all += text;
    return all;
  };
  const std::string mixed = "q" + repeated("\u0301\u0323");  // combining classes 230 and 220
  const std::string ordered = "q" + repeated("\u0323") + repeated("\u0301");
  for (const NormalForm form :
       {NormalForm::kNfc, NormalForm::kNfd, NormalForm::kNfkc, NormalForm::kNfkd}) {
    EXPECT_TRUE(normalized(mixed, form) == ordered);
  }
  EXPECT_TRUE(normalized("e" + repeated("\u0301\u0323"), NormalForm::kNfc) ==
              "\u1eb9" + repeated("\u0323").substr(2) + repeated("\u0301"));
}

TEST(TextUnicode, normalization_keeps_invalid_utf8_bytes) {
  EXPECT_EQ(normalized("e\u0301\xff"
                       "e\u0301\xc3",
                       NormalForm::kNfc),
            "\u00e9\xff\u00e9\xc3");
  EXPECT_EQ(normalized("\xff\xfe", NormalForm::kNfc), "\xff\xfe");
  EXPECT_EQ(normalized("e\xcc", NormalForm::kNfc), "e\xcc");
}

// Cutting a text before an ASCII character does not change its normal form.
TEST(TextUnicode, normalization_by_parts_matches_the_whole) {
  static constexpr const char* kParts[] = {
      "a",      "e",      " ",      "\u0301", "\u0323", "\u00e9", "\ud55c", "\u1112", "\u1161",
      "\u11ab", "\u212b", "\ufb01", "1",      "\u00bd", "\u0f71", "\u0f72", "\u093c", "\u0915"};
  test::TestRandom random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t n = 1 + random.below(12); n > 0; --n)
      text += kParts[random.below(std::size(kParts))];
    for (const NormalForm form :
         {NormalForm::kNfc, NormalForm::kNfd, NormalForm::kNfkc, NormalForm::kNfkd}) {
      const std::string once = normalized(text, form);
      EXPECT_EQ(normalized(once, form), once);
      // Behind a character that is not ASCII, the whole text is one part.
      EXPECT_EQ(normalized("\u4e2d" + text, form), "\u4e2d" + once) << text;
    }
  }
}

TEST(TextUnicode, replaces_each_maximal_prefix_of_invalid_utf8) {
  const std::string r = "\ufffd";
  EXPECT_EQ(as_utf8("a\xff"
                    "b"),
            "a" + r + "b");
  EXPECT_EQ(as_utf8("\xe4\xb8"
                    "x"),
            r + "x");
  EXPECT_EQ(as_utf8("\xf0\x9f\x98"), r);
  EXPECT_EQ(as_utf8("\xf0\x80\x80"), r + r + r);
  EXPECT_EQ(as_utf8("\xed\xa0\x80"), r + r + r);
  EXPECT_EQ(as_utf8("\xc0\xaf"), r + r);
  EXPECT_EQ(as_utf8("\xe2\x82\xe2\x82\xac"), r + "\u20ac");
}

TEST(TextUnicode, recognizes_incomplete_characters) {
  EXPECT_EQ(unfinished_bytes(""), 0U);
  EXPECT_EQ(unfinished_bytes("a"), 0U);
  EXPECT_EQ(unfinished_bytes("a\xc3"), 1U);
  EXPECT_EQ(unfinished_bytes("\xe4\xb8"), 2U);
  EXPECT_EQ(unfinished_bytes("\xf0\x9f\x98"), 3U);
  EXPECT_EQ(unfinished_bytes("\xf0\x9f\x98\x80"), 0U);
  EXPECT_EQ(unfinished_bytes("\x80\x80"), 0U);
  EXPECT_EQ(unfinished_bytes("\xe0\x80"), 0U);  // overlong
  EXPECT_EQ(unfinished_bytes("\xed\xa0"), 0U);  // a surrogate
  EXPECT_EQ(unfinished_bytes("\xff"), 0U);
}

TEST(TextUnicode, each_byte_has_one_symbol) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  std::string back;
  EXPECT_TRUE(bytes_of_symbols(symbols_of_bytes(all), back));
  EXPECT_EQ(back, all);
  EXPECT_EQ(symbols_of_bytes(" \n!"), "\u0120\u010a!");
  EXPECT_FALSE(bytes_of_symbols("a b", back));
  EXPECT_FALSE(bytes_of_symbols("\u0144", back));
  EXPECT_FALSE(bytes_of_symbols("\xff", back));
  EXPECT_TRUE(bytes_of_symbols("\u0143", back));
}

}  // namespace
}  // namespace tensorgrad::text
