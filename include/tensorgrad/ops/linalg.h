// SPDX-License-Identifier: MIT
// Matrix products. Ops throw ShapeError if shapes do not match, and DtypeError if element types
// differ or are not supported.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns the matrix product: [..., M, K] x [..., K, N] -> [..., M, N]. Batch axes broadcast. A
/// vector [K] is a row on the left and a column on the right, and that axis is dropped from the
/// result. Supports f32, i32 and u32. Integer products are exact modulo 2^32, but do not use the
/// fast kernels.
Tensor matmul(Tensor a, Tensor b, Loc loc = Loc::current());

/// Returns `x` times the transposed weight, plus the bias: [..., in] -> [..., out]. The weight is
/// [out, in] and the bias [out], as in `torch.nn.functional.linear`.
Tensor linear(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
              Loc loc = Loc::current());

/// Returns the sum of products that a formula such as "bij,bjk->bik" defines, like `torch.einsum`.
/// Letters name axes, and "..." stands for the remaining axes. Axes of size 1 broadcast. Letters
/// that are missing on the right side are summed over. A letter that occurs twice in an operand
/// takes the diagonal. Without "->", the result has the axes of "...", then those whose letter
/// occurs once, in alphabetical order. Operands are multiplied from left to right. Throws
/// ShapeError if the formula is invalid or does not match the operands.
Tensor einsum(std::string_view formula, const std::vector<Tensor>& operands,
              Loc loc = Loc::current());

/// Returns the product of `a` and `b`, summed over the last `count` axes of `a` and the first
/// `count` axes of `b`.
Tensor tensordot(Tensor a, Tensor b, int count = 2, Loc loc = Loc::current());

/// Returns the product of `a` and `b`, summed over pairs of axes: axis `a_axes[i]` of `a` and axis
/// `b_axes[i]` of `b`, which have the same size.
Tensor tensordot(Tensor a, Tensor b, const std::vector<int>& a_axes, const std::vector<int>& b_axes,
                 Loc loc = Loc::current());

/// Returns the outer product of two vectors: [n], [m] -> [n, m].
Tensor outer(Tensor a, Tensor b, Loc loc = Loc::current());

/// Returns the dot product of two vectors of the same size: [n], [n] -> [].
Tensor dot(Tensor a, Tensor b, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
