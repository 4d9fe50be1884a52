// SPDX-License-Identifier: MIT
// The pointwise ops (pointwise.def) as op definitions, ops::exp, and as builders, op::exp. Integers
// wrap; integer x / 0 and x % 0 are 0; shift counts are taken modulo 32. f32 follows IEEE 754. As
// in PyTorch, minimum, maximum and relu return NaN if an operand is NaN, and round rounds half to
// even.
#pragma once

#include <span>

#include "ir/op_def.h"
#include "ops/expr.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace ops {
#define POINTWISE1(name, ...) extern const OpDef name;
#define POINTWISE2(name, ...) extern const OpDef name;
#define POINTWISE3(name, ...) extern const OpDef name;
#define POINTWISE4(name, ...) extern const OpDef name;
#define POINTWISE_TO(name, ...) extern const OpDef name;
#include "ops/pointwise.def"
}  // namespace ops

namespace op {
// Each adds one node. At least one operand must be a value. Numbers take its shape, and the dtype
// of the operands (in where(), of the other branch).
#define POINTWISE1(name, ...) Expr name(Arg a);
#define POINTWISE2(name, ...) Expr name(Arg a, Arg b);
#define POINTWISE3(name, ...) Expr name(Arg a, Arg b, Arg c);
#define POINTWISE4(name, ...) Expr name(Arg a, Arg b, Arg c, Arg d);
#define POINTWISE_TO(name, ...) Expr name(Expr a, DType dtype);
#include "ops/pointwise.def"
}  // namespace op

// Returns all pointwise ops in table order.
std::span<const OpDef* const> pointwise_ops();

}  // namespace tensorgrad::inline TENSORGRAD_ABI
