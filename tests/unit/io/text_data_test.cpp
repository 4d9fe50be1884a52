// SPDX-License-Identifier: MIT
// Text as tokens: vocabulary, split and windows, and files that are gzipped, have a byte order
// mark, or are not UTF-8.
#include <gmock/gmock.h>

#include <tuple>

#include "tensorgrad/data/files.h"
#include "tensorgrad/data/text.h"
#include "unit/io/io_test_util.h"

namespace tensorgrad::test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(TextData, orders_characters_by_code_point_and_holds_out_the_end) {
  const TextData data =
      read_text(FileSource::text("b\u00e9a\nab\U0001F600b\u4e2da"), {.holdout = 0.2});
  EXPECT_EQ(data.vocabulary.symbols(),
            (std::vector<std::string>{"\n", "a", "b", "\u00e9", "\u4e2d", "\U0001F600"}));
  EXPECT_EQ(data.train, (std::vector<std::int32_t>{2, 3, 1, 0, 1, 2, 5, 2}));
  EXPECT_EQ(data.validation, (std::vector<std::int32_t>{4, 1}));
  EXPECT_EQ(data.vocabulary.decode(data.train) + data.vocabulary.decode(data.validation),
            "b\u00e9a\nab\U0001F600b\u4e2da");
}

TEST(TextData, of_a_given_vocabulary_keeps_its_numbers) {
  const TextData data =
      read_text(FileSource::text("cab"), {.vocabulary = {"c", "b", "a", "z"}, .holdout = 0});
  EXPECT_EQ(data.train, (std::vector<std::int32_t>{0, 2, 1}));
  EXPECT_EQ(data.vocabulary.size(), 4);
  EXPECT_TRUE(data.validation.empty());
}

TEST(TextData, is_read_gzipped_or_not_without_a_byte_order_mark) {
  const TempDir folder;
  write_file_atomically(folder / "plain", "\xef\xbb\xbfhello");
  write_file_atomically(folder / "zipped", as_bytes(gzipped("hello")));
  const TextData plain = read_text(folder / "plain"), zipped = read_text(folder / "zipped");
  EXPECT_EQ(plain.vocabulary.decode(plain.train), "hello");
  EXPECT_EQ(zipped.train, plain.train);
}

TEST(TextData, errors_name_the_byte) {
  const auto refused = [](std::string_view text, const TextOptions& options, const char* message) {
    EXPECT_THAT([&] { read_text(FileSource::text(text, "f.txt"), options); },
                ThrowsMessage<IoError>(HasSubstr(message)));
  };
  refused("", {}, "f.txt: is empty");
  refused("\xef\xbb\xbf", {}, "f.txt: is empty");
  refused("ab\xff", {}, "f.txt: invalid UTF-8 at byte 2");
  refused("ab\xc3", {}, "f.txt: invalid UTF-8 at byte 2");
  refused("\xed\xa0\x80", {}, "f.txt: invalid UTF-8 at byte 0");
  refused("abc\u00e9", {.vocabulary = {"a", "b", "c"}},
          "f.txt: \"\u00e9\" at byte 3 is not in the vocabulary");
  refused("abc", {.holdout = 1}, "f.txt: holdout must be in [0, 1), got 1");
  refused("abc", {.holdout = -0.1}, "f.txt: holdout must be in [0, 1), got -0.1");
  refused("abc", {.holdout = NAN}, "f.txt: holdout must be in [0, 1), got");
  refused("abc", {.vocabulary = {"a", "bc"}}, "\"bc\" is not a single UTF-8 character");
  refused("abc", {.vocabulary = {"a", ""}}, "\"\" is not a single UTF-8 character");
  refused("abc", {.vocabulary = {"a", "b", "a"}}, "\"a\" occurs twice");
  const TempDir folder;
  write_file_atomically(folder / "long", "0123456789");
  EXPECT_EQ(read_text(folder / "long", {.max_bytes = 10}).vocabulary.size(), 10);
  EXPECT_THAT([&] { read_text(folder / "long", {.max_bytes = 9}); },
              ThrowsMessage<IoError>(HasSubstr("text exceeds the limit of 9 bytes")));
}

TEST(CharVocabulary, tokens_out_of_range_are_rejected) {
  const CharVocabulary letters({"a", "b"});
  EXPECT_THAT([&] { std::ignore = letters.decode(std::vector<std::int32_t>{0, 2}); },
              ThrowsMessage<IoError>(HasSubstr("token 2 is out of range; expected 0 to 1")));
  EXPECT_THAT([&] { std::ignore = letters.decode(std::vector<std::int32_t>{-1}); },
              ThrowsMessage<IoError>(HasSubstr("token -1 is out of range; expected 0 to 1")));
}

}  // namespace
}  // namespace tensorgrad::test
