// SPDX-License-Identifier: MIT
// Rules that derive numbers from the dynamic size. tests/onnx tests the operators that use them.
#include "onnx/size_rules.h"

#include <gtest/gtest.h>

#include <functional>

namespace tensorgrad::onnx {
namespace {

const Sizes kTried = {3, 7, 10, 41};

Numbers for_each_size(const std::function<double(std::int64_t size)>& number) {
  Numbers values;
  for (const std::int64_t size : kTried) values.push_back(number(size));
  return values;
}

TEST(SizeRules, lines_go_through_whole_numbers) {
  const auto line = [](std::int64_t n) { return static_cast<double>(3 * n - 2); };
  EXPECT_EQ(line_through(kTried, for_each_size(line)), (Line{3, -2}));
  EXPECT_EQ(line_through(kTried, {5, 5, 5, 5}), (Line{0, 5}));
  EXPECT_EQ(line_through(kTried, {3, 7, 10, 32}), std::nullopt);      // at most 32
  EXPECT_EQ(line_through(kTried, {1, 3, 5, 20}), std::nullopt);       // halves, rounded down
  EXPECT_EQ(line_through(kTried, {4, 8, 10, 42}), std::nullopt);      // rounded to even numbers
  EXPECT_EQ(line_through({2, 4, 8}, {1, 2, 4}), std::nullopt);        // halves
  EXPECT_EQ(line_through(kTried, {9, 49, 100, 1681}), std::nullopt);  // squares
  EXPECT_EQ(line_through(kTried, {1.5, 3.5, 5, 20.5}), std::nullopt);
}

TEST(SizeRules, reciprocals_are_rounded_to_f32) {
  const auto of = [](std::int64_t a, std::int64_t b) {
    return for_each_size([=](std::int64_t n) {
      return static_cast<double>(static_cast<float>(1.0 / static_cast<double>(a * n + b)));
    });
  };
  EXPECT_EQ(reciprocal_line(kTried, of(1, 0)), (Line{1, 0}));
  EXPECT_EQ(reciprocal_line(kTried, of(10, -1)), (Line{10, -1}));
  EXPECT_EQ(reciprocal_line(kTried, of(-2, 0)), (Line{-2, 0}));
  EXPECT_EQ(reciprocal_line(kTried, of(786433, 0)), (Line{786433, 0}));  // > 2^24 for n = 41
  EXPECT_EQ(reciprocal_line(kTried, {0, 0, 0, 0}), std::nullopt);
  EXPECT_EQ(reciprocal_line(kTried, {2.0 / 3, 2.0 / 7, 2.0 / 10, 2.0 / 41}), std::nullopt);
}

TEST(SizeRules, steps_run_along_an_axis) {
  // [2, n, 1]: 5 + 2 i, then -1 + 2 i
  std::vector<NumberTensor> tensors;
  for (const std::int64_t n : kTried) {
    NumberTensor& each = tensors.emplace_back();
    each.shape = {2, n, 1};
    for (const double base : {5, -1}) {
      for (std::int64_t i = 0; i < n; ++i) each.values.push_back(base + static_cast<double>(2 * i));
    }
  }
  EXPECT_EQ(steps_along(kTried, tensors, 1), (Steps{{1, 0}, 2, {5, -1}}));
  tensors[2].values.back() += 1;
  EXPECT_EQ(steps_along(kTried, tensors, 1), std::nullopt);
}

TEST(SizeRules, of_two_columns_have_the_same_steps) {
  std::vector<NumberTensor> tensors;
  for (const std::int64_t n : kTried) {
    NumberTensor& each = tensors.emplace_back();
    each.shape = {n + 1, 2};
    for (std::int64_t i = 0; i <= n; ++i)
      each.values.insert(each.values.end(), {static_cast<double>(i), static_cast<double>(i + 3)});
  }
  EXPECT_EQ(steps_along(kTried, tensors, 0), (Steps{{1, 1}, 1, {0, 3}}));
}

TEST(SizeRules, are_written_as_sums) {
  EXPECT_EQ(text_of(Line{1, 0}, "batch"), "batch");
  EXPECT_EQ(text_of(Line{1, -1}, "batch"), "batch-1");
  EXPECT_EQ(text_of(Line{6, 2}, "length"), "6*length+2");
}

}  // namespace
}  // namespace tensorgrad::onnx
