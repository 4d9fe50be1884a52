// SPDX-License-Identifier: MIT
// Numbers read from text, by std::from_chars or std::strtod.
#include "base/numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>

namespace tensorgrad {
namespace {

using Value = std::optional<double>;

TEST(ParseFinite, reads_decimal_numbers_by_either_function) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  const std::pair<std::string, double> numbers[] = {
      {"0", 0},      {"-1", -1},         {".5", 0.5},
      {"5.", 5},     {"2e-3", 0.002},    {"-1.25E+2", -125},
      {"0.1", 0.1},  {"00012", 12},      {"1.7976931348623157e308", kLargest},
      {"1e-400", 0}, {"5e-324", 5e-324}, {"0." + std::string(400, '0') + "1", 0},
  };
  for (const auto& [text, value] : numbers) {
    EXPECT_EQ(parse_finite(text), Value(value)) << text;
    EXPECT_EQ(parse_finite_by_strtod(text), Value(value)) << text;
  }
}

TEST(ParseFinite, other_text_is_rejected_by_either_function) {
  for (const char* text :
       {"",    ".",    "-",        "e5",    "1e",     "1e+", "+1",   "--1", "-+1",
        " 1",  "1 ",   "\n1",      "1,5",   "1.5.2",  "1-2", "0x10", "1p3", "nan",
        "inf", "-inf", "infinity", "1e309", "-1e999", "1f",  "one"}) {
    EXPECT_EQ(parse_finite(text), Value()) << text;
    EXPECT_EQ(parse_finite_by_strtod(text), Value()) << text;
  }
  const std::string with_zero("1\0", 2);
  EXPECT_EQ(parse_finite(with_zero), Value());
  EXPECT_EQ(parse_finite_by_strtod(with_zero), Value());
}

TEST(ParseFinite, returns_the_same_bits_by_either_function) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> mantissa(-10, 10);
  std::uniform_int_distribution<int> exponent(-320, 307), digits(0, 18);
  for (int i = 0; i < 10'000; ++i) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*fe%d", digits(random), mantissa(random), exponent(random));
    const Value one = parse_finite(text), other = parse_finite_by_strtod(text);
    ASSERT_TRUE(one.has_value() && other.has_value()) << text;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(*one), std::bit_cast<std::uint64_t>(*other)) << text;
  }
}

}  // namespace
}  // namespace tensorgrad
