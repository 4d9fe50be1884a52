// SPDX-License-Identifier: MIT
// Finds how a number depends on the dynamic size from its values for some sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::onnx {

using Sizes = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

// a * size + b
struct Line {
  std::int64_t a = 0, b = 0;

  bool operator==(const Line&) const = default;
};

// Returns a text such as "batch" or "2*batch+1".
std::string text_of(const Line& line, const std::string& size_name);

// Returns the line with integers a and b through the values for the sizes (at least two), if there
// is one.
std::optional<Line> line_through(const Sizes& sizes, const Numbers& values);

// Returns the line whose reciprocals, as floats, are the values. Floats do not determine large
// numbers exactly, so a line through 0 is tried first.
std::optional<Line> reciprocal_line(const Sizes& sizes, const Numbers& values);

// Elements base[.., 0, ..] + step * i, where i is the index along an axis.
struct Steps {
  Line length;  // of the axis
  std::int64_t step = 0;
  std::vector<std::int64_t> base;  // row-major

  bool operator==(const Steps&) const = default;
};

// A row-major tensor for one size.
struct NumberTensor {
  Shape shape;
  Numbers values;
};

// Returns the rule that yields the tensor of each size, if there is one. Shapes may only differ in
// this axis.
std::optional<Steps> steps_along(const Sizes& sizes, const std::vector<NumberTensor>& tensors,
                                 std::size_t axis);

}  // namespace tensorgrad::onnx
