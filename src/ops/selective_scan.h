// SPDX-License-Identifier: MIT
// What the records of the selective scan, and whoever lowers them, know of a node.
#pragma once

#include "ir/op_def.h"
#include "kernel/selective.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Sizes and operands of a node of selective_scan (u, delta, A, bc, and where attrs say so `initial`
// and, for `gate`, z; nothing kept in its result where attrs have `states` 0),
// selective_scan_adjoint (delta, A, bc, dy, where attrs say so `initial`) or selective_scan_grad
// (u, delta, A, bc, states, dy, where attrs say so `ends`, and for `gate` z and o), with the shapes
// that kernel/selective.h gives. With `skip` the last row of A is D. With `resets`, |delta| is the
// step, and the state before a step whose delta is negative counts as zero.
struct SelectiveShape {
  SelectiveShape(const OpDef& op, const Shape& delta, const Shape& a, const Attrs& attrs);

  SelectivePart part;
  SelectiveSizes sizes;
  bool zero_order_hold, resets;
  bool keeps_states;              // the forward pass
  int numbers[kSelectiveInputs];  // of the operands; -1: there is none

  [[nodiscard]] int number(SelectiveInput which) const {
    return numbers[static_cast<std::size_t>(which)];
  }
  [[nodiscard]] int operands() const {
    int count = 0;
    for (const int each : numbers) count += each >= 0 ? 1 : 0;
    return count;
  }
  [[nodiscard]] std::vector<std::int64_t> results() const {
    return sizes.results(part, keeps_states);
  }
};

// Their results in double.
void eval_selective(const EvalContext& ctx, RefTensor& out);
void eval_adjoint(const EvalContext& ctx, RefTensor& out);
void eval_selective_grad(const EvalContext& ctx, RefTensor& out);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
