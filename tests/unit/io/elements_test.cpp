// SPDX-License-Identifier: MIT
// Conversion of file elements: every half, and the limits of every integer type.
#include "io/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "tensorgrad/error.h"

namespace tensorgrad {
namespace {

// Returns the value of a half by IEEE 754-2019, 3.4.
double half_by_definition(unsigned bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31U);
  const int fraction = static_cast<int>(bits & 1023U);
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Elements, every_half_is_exact) {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const double want = half_by_definition(bits);
    const float got = from_half(static_cast<std::uint16_t>(bits));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(got, want) << bits;
      ASSERT_EQ(std::signbit(got), std::signbit(want)) << bits;
    }
  }
}

TEST(Elements, every_half_round_trips) {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const unsigned back = to_half(from_half(half));
    if (std::isnan(from_half(half))) {
      ASSERT_TRUE(std::isnan(from_half(static_cast<std::uint16_t>(back)))) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

// Rounds to the nearest half; ties go to the one whose last bit is 0.
TEST(Elements, floats_round_to_the_nearest_half) {
  for (unsigned bits = 0; bits < 0x7c00U; ++bits) {
    const double low = half_by_definition(bits);
    const double high = bits == 0x7bffU ? 65536 : half_by_definition(bits + 1);
    const double middle = (low + high) / 2;
    const auto rounded = [](double value) { return to_half(static_cast<float>(value)); };
    ASSERT_EQ(rounded(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(rounded(std::nextafter(static_cast<float>(middle), 0.F)), bits) << bits;
    ASSERT_EQ(rounded(std::nextafter(static_cast<float>(middle), 1e9F)), bits + 1) << bits;
    ASSERT_EQ(rounded(-middle), 0x8000U | rounded(middle)) << bits;
  }
}

template <class T>
StoredTensor stored(const std::string& dtype, const std::vector<T>& values) {
  StoredTensor tensor{dtype, {static_cast<std::int64_t>(values.size())}, {}};
  tensor.data.resize(values.size() * sizeof(T));
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

std::vector<std::int32_t> ints(const io::Elements& elements) {
  std::vector<std::int32_t> values(elements.bytes.size() / sizeof(std::int32_t));
  std::memcpy(values.data(), elements.bytes.data(), elements.bytes.size());
  return values;
}

template <class T>
void expect_ends_kept(const std::string& dtype) {
  using Limits = std::numeric_limits<T>;
  const io::Elements elements =
      io::to_elements("f", "t", stored<T>(dtype, {Limits::lowest(), T{1}, Limits::max()}));
  EXPECT_EQ(elements.dtype, i32) << dtype;
  EXPECT_EQ(ints(elements), (std::vector<std::int32_t>{Limits::lowest(), 1, Limits::max()}))
      << dtype;
}

TEST(Elements, short_integers_are_kept) {
  expect_ends_kept<std::int8_t>("I8");
  expect_ends_kept<std::uint8_t>("U8");
  expect_ends_kept<std::int16_t>("I16");
  expect_ends_kept<std::uint16_t>("U16");
  expect_ends_kept<std::int32_t>("I32");
}

TEST(Elements, integers_outside_i32_are_rejected) {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(ints(io::to_elements("f", "t", stored<std::int64_t>("I64", {most, -most - 1}))),
            (std::vector<std::int32_t>{INT32_MAX, INT32_MIN}));
  EXPECT_THROW(io::to_elements("f", "t", stored<std::int64_t>("I64", {most + 1})), IoError);
  EXPECT_THROW(io::to_elements("f", "t", stored<std::int64_t>("I64", {-most - 2})), IoError);
  EXPECT_THROW(io::to_elements("f", "t", stored<std::uint64_t>("U64", {UINT64_MAX})), IoError);
  EXPECT_EQ(io::to_elements("f", "t", stored<std::uint32_t>("U32", {UINT32_MAX})).dtype, u32);
}

TEST(Elements, a_bool_is_one_word_of_0_or_1) {
  const io::Elements elements = io::to_elements("f", "t", stored<std::uint8_t>("BOOL", {0, 1, 2}));
  EXPECT_EQ(elements.dtype, boolean);
  EXPECT_EQ(ints(elements), (std::vector<std::int32_t>{0, 1, 1}));
}

TEST(Elements, of_an_empty_tensor_are_empty) {
  EXPECT_TRUE(io::to_elements("f", "t", {"F16", {0, 3}, {}}).bytes.empty());
}

}  // namespace
}  // namespace tensorgrad
