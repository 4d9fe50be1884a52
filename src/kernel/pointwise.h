// SPDX-License-Identifier: MIT
// The machine words of a pointwise op: WGSL text and a vectorised block function per element type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Operands of a block function: element i of operand k is data[k][i & mask[k]]. A mask of zero is
// for one value that all elements share: 16 times the same.
struct CpuOperands {
  static constexpr std::size_t kEach = ~std::size_t{0};
  const void* data[4] = {nullptr, nullptr, nullptr, nullptr};  // unused ones are null
  std::size_t mask[4] = {kEach, kEach, kEach, kEach};
};

// out[i] = op(operands at i) for i < n. All pointers are 64-byte aligned and every element has four
// bytes; `out` may be one of the operands. Reads and writes may run past n up to the next multiple
// of 16 elements, so blocks have room for that.
using CpuBlockFn = void (*)(const CpuOperands& operands, void* out, std::size_t n);

struct PointwiseCode {
  const char* name;
  int arity;
  // WGSL expression per element type of the *last* operand, with {0} {1} {2} {3} for the operands
  // (each a side-effect-free WGSL identifier or literal) and {t} for the result's type. Empty where
  // the op does not take that type. Booleans are WGSL `bool` here. Names of helper functions that
  // the expression calls are defined in wgsl_helper().
  std::array<std::string_view, 4> wgsl;
  // The same per element type for the CPU: fetches the block function for the best instruction set
  // of this machine; null where the op does not take that type.
  CpuBlockFn (*block)(DType dtype, DType result);
};

// WGSL functions that pointwise expressions call: their text by name ("tg_erf"), empty if unknown.
std::string_view wgsl_helper(std::string_view name);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
