// SPDX-License-Identifier: MIT
// Shared by pointwise.cpp and pointwise_simd.cpp: the names in the columns "takes" and "gives" of
// pointwise.def, and the number of each op.
#pragma once

#include "kernel/pointwise.h"
#include "tensorgrad/types.h"

namespace tensorgrad::pointwise {

// Sets of element types.
using Takes = unsigned;
constexpr Takes dtype_bit(DType dtype) { return 1U << static_cast<unsigned>(dtype); }
// NOLINTBEGIN(readability-identifier-naming): words of the table
inline constexpr Takes Float = dtype_bit(DType::kF32);
inline constexpr Takes Word = dtype_bit(DType::kU32);
inline constexpr Takes Integer = dtype_bit(DType::kI32) | Word;
inline constexpr Takes Number = Float | Integer;
inline constexpr Takes Bool = dtype_bit(DType::kBool);
inline constexpr Takes Any = Number | Bool | dtype_bit(DType::kF16);

enum Gives { Same, ToBool, Asked };
// NOLINTEND(readability-identifier-naming)

constexpr bool contains(Takes takes, DType dtype) { return (takes & dtype_bit(dtype)) != 0; }

enum Row : int {
#define POINTWISE1(name, ...) kRow_##name,
#define POINTWISE2(name, ...) kRow_##name,
#define POINTWISE3(name, ...) kRow_##name,
#define POINTWISE4(name, ...) kRow_##name,
#define POINTWISE_TO(name, ...) kRow_##name,
#include "ops/pointwise.def"
  kRows
};

// True if the op maps operands of type `from` (the last one) to a result of type `to`.
constexpr bool maps(Takes takes, Gives gives, DType from, DType to) {
  if (!contains(takes, from)) return false;
  if (gives == Same) return from == to;
  return gives == ToBool ? to == DType::kBool : contains(takes, to);
}

// Returns the block function for the best instruction set of this machine, or null if the op does
// not support the types.
CpuBlockFn block(Row row, DType from, DType to);

}  // namespace tensorgrad::pointwise
