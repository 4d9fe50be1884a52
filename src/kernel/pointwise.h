// SPDX-License-Identifier: MIT
// The code of a pointwise op: WGSL text and a vectorized CPU block function per element type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Operands of a block function: element i of operand k is data[k][i & mask[k]]. If the mask is
// zero, all elements share one value, which is stored 16 times.
struct CpuOperands {
  static constexpr std::size_t kEach = ~std::size_t{0};
  const void* data[4] = {nullptr, nullptr, nullptr, nullptr};  // unused ones are null
  std::size_t mask[4] = {kEach, kEach, kEach, kEach};
};

// Computes out[i] = op(operands at i) for i < n. All pointers are 64-byte aligned and all elements
// have four bytes. `out` may alias an operand. Reads and writes may run past n up to the next
// multiple of 16 elements, so blocks must have room for that.
using CpuBlockFn = void (*)(const CpuOperands& operands, void* out, std::size_t n);

// Computes one element in double. Integers are exact, and booleans are 0 and 1.
using ScalarFn = double (*)(const double* args);
using ScalarTable = std::array<std::array<ScalarFn, 4>, 4>;

struct PointwiseCode {
  const char* name;
  int arity;
  // WGSL expression per element type of the *last* operand. {0} {1} {2} {3} stand for the operands
  // (each a side-effect-free WGSL identifier or literal), {t} for the result type. Empty if the op
  // does not support the type. Booleans are WGSL `bool` here. Helper functions called by the
  // expression are defined in wgsl_helper().
  std::array<std::string_view, 4> wgsl;
  // Returns the CPU block function for the best instruction set of this machine, or null if the op
  // does not support the type.
  CpuBlockFn (*block)(DType dtype, DType result);
  ScalarTable scalar;  // by element type of the last operand and of the result; null as above
};

// Returns the text of a WGSL function that pointwise expressions call, e.g. "tg_erf", or an empty
// string if the name is unknown.
std::string_view wgsl_helper(std::string_view name);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
