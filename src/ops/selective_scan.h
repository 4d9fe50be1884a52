// SPDX-License-Identifier: MIT
// Sizes and operands of the selective scan ops, for their records and lowering.
#pragma once

#include "ir/op_def.h"
#include "kernel/selective.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Sizes and operands of a node. Shapes are those of kernel/selective.h. Operands:
// - selective_scan: u, delta, A, bc; if attrs say so, `initial` and, with `gate`, z. If attrs have
//   `states` 0, the result has no saved states.
// - selective_scan_adjoint: delta, A, bc, dy; if attrs say so, `initial`
// - selective_scan_grad: u, delta, A, bc, states, dy; if attrs say so, `ends` and, with `gate`, z
//   and o
//
// With `skip`, the last row of A is D. With `resets`, the step size is |delta|, and the state
// before a step with negative delta is treated as 0.
struct SelectiveShape : SelectiveParams {
  SelectiveShape(const OpDef& op, const Shape& delta, const Shape& a, const Attrs& attrs);

  int numbers[kSelectiveInputs];  // operand numbers; -1 if absent

  [[nodiscard]] int number(SelectiveInput which) const {
    return numbers[static_cast<std::size_t>(which)];
  }
  [[nodiscard]] int operands() const {
    int count = 0;
    for (const int each : numbers) count += each >= 0 ? 1 : 0;
    return count;
  }
};

// Evaluate the ops in double.
void eval_selective(const EvalContext& ctx, RefTensor& out);
void eval_adjoint(const EvalContext& ctx, RefTensor& out);
void eval_selective_grad(const EvalContext& ctx, RefTensor& out);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
