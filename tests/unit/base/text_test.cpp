// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <gmock/gmock.h>

#include <cstdint>

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TextBuilder, writes_as_a_stream_does) {
  TextBuilder text;
  const char* word = "a ";
  const std::string letter = "b";
  text << word << letter << 'c' << ' ' << -1 << ' ' << std::int64_t{1} << 40 << ' '
       << std::size_t{7} << ' ' << 0.1F << ' ' << 1e20 << ' ' << 1234567.0 << ' ' << 2.0;
  EXPECT_EQ(text.str(), "a bc -1 140 7 0.1 1e+20 1.23457e+06 2");
}

TEST(SplitWords, splits_at_blanks) {
  EXPECT_THAT(split_words(" one  two\tthree\n"), ElementsAre("one", "two", "three"));
  EXPECT_THAT(split_words("one"), ElementsAre("one"));
  EXPECT_THAT(split_words(" \n"), IsEmpty());
  EXPECT_THAT(split_words(""), IsEmpty());
}

}  // namespace
}  // namespace tensorgrad::testing
