// SPDX-License-Identifier: MIT
// Ops that create tensors. Ops throw ShapeError if a size is less than 1.
#pragma once

#include <cstdint>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns a tensor filled with `value`. Throws DtypeError if an integer or boolean `dtype` cannot
/// represent the value.
Tensor full(const Shape& shape, double value, DType dtype = f32, Loc loc = Loc::current());

/// Returns a tensor of zeros.
Tensor zeros(const Shape& shape, DType dtype = f32, Loc loc = Loc::current());

/// Returns a tensor of ones.
Tensor ones(const Shape& shape, DType dtype = f32, Loc loc = Loc::current());

/// Returns the vector 0, 1, ..., n - 1. Supports all types except bool.
Tensor arange(std::int64_t n, DType dtype = i32, Loc loc = Loc::current());

/// Returns a tensor whose elements are their own indices along `axis`. Supports all types except
/// bool.
Tensor iota(const Shape& shape, int axis, DType dtype = i32, Loc loc = Loc::current());

/// Returns a tensor with the given elements in row-major order. Throws ShapeError if their number
/// does not match `shape`. The elements become part of the compiled program. For more than a few,
/// use an input or a parameter.
Tensor constant(const std::vector<float>& values, const Shape& shape, Loc loc = Loc::current());
Tensor constant(const std::vector<std::int32_t>& values, const Shape& shape,
                Loc loc = Loc::current());

/// Returns a tensor of the shape and element type of `x`, filled with `value`, 0 or 1.
Tensor full_like(Tensor x, double value, Loc loc = Loc::current());
Tensor zeros_like(Tensor x, Loc loc = Loc::current());
Tensor ones_like(Tensor x, Loc loc = Loc::current());

/// Returns a matrix [rows, columns] with ones on the diagonal and zeros elsewhere. It is square if
/// `columns` is -1.
Tensor eye(std::int64_t rows, std::int64_t columns = -1, DType dtype = f32,
           Loc loc = Loc::current());

/// Returns n evenly spaced numbers from `first` to `last`, f32[n]. Both ends are included and
/// exact. If n is 1, returns `first`.
Tensor linspace(double first, double last, std::int64_t n, Loc loc = Loc::current());

/// Returns the one-hot encoding of an index: i32 or u32 [...] -> [..., classes]. An element is 1 if
/// its position equals the index, else 0. An index out of range yields zeros.
Tensor one_hot(Tensor index, std::int64_t classes, DType dtype = f32, Loc loc = Loc::current());

/// Returns one grid [n0, n1, ...] for each of the vectors, whose sizes are n0, n1 and so on. Grid i
/// is vector i along axis i, repeated along the other axes (`torch.meshgrid` with `indexing="ij"`).
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
