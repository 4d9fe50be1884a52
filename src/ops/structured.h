// SPDX-License-Identifier: MIT
// Helpers for the definitions of structured ops: checks, leaf types, shape arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/op_def.h"
#include "ops/expr.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Throws ShapeError with `text`.
[[noreturn]] void shape_error(const std::string& text);
[[noreturn]] void dtype_error(const std::string& text);
// Returns the attribute dtype. Throws DtypeError if it is not a valid DType.
DType dtype_attr(const Attrs& attrs);

// Wraps an integer to 32 bits; returns other values unchanged.
double wrap(DType dtype, double value);

// Returns row-major strides.
std::vector<std::int64_t> pitches(const Shape& shape);
// Returns `shape` without `axes` (sorted, counted from the front).
Shape without_axes(const Shape& shape, const std::vector<std::int64_t>& axes);
bool contains(const std::vector<std::int64_t>& axes, std::int64_t axis);
// Throws ShapeError if `axis` is out of range.
void check_axis(std::int64_t axis, const Shape& shape);

// Splits a shape at an axis: the product of the sizes before it, its size, the product after it.
struct AxisSplit {
  std::int64_t pre = 1, size = 1, post = 1;

  // Returns the index of element t of a line. There are pre * post lines.
  [[nodiscard]] std::size_t element(std::int64_t line, std::int64_t t) const {
    return static_cast<std::size_t>((line / post * size + t) * post + line % post);
  }
};
AxisSplit split_at(const Shape& shape, std::int64_t axis);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
