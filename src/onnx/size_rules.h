// SPDX-License-Identifier: MIT
// How a number depends on the open size, by what it is for some sizes.
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

// "batch", "2*batch+1"
std::string text_of(const Line& line, const std::string& size_name);

// The line through a number for each size, if there is one of whole a and b. At least two sizes.
std::optional<Line> line_through(const Sizes& sizes, const Numbers& values);

// The line whose reciprocals, as floats, these are. Floats do not tell large numbers exactly: one
// through 0 is tried first.
std::optional<Line> reciprocal_line(const Sizes& sizes, const Numbers& values);

// base[.., 0, ..] + step * i at place i of an axis.
struct Steps {
  Line length;  // of the axis
  std::int64_t step = 0;
  std::vector<std::int64_t> base;  // row-major

  bool operator==(const Steps&) const = default;
};

// A tensor of one size: row-major.
struct NumberTensor {
  Shape shape;
  Numbers values;
};

// What gives the tensor of each size; their shapes differ in this axis alone.
std::optional<Steps> steps_along(const Sizes& sizes, const std::vector<NumberTensor>& tensors,
                                 std::size_t axis);

}  // namespace tensorgrad::onnx
