// SPDX-License-Identifier: MIT
// What the records of the selective scan, and whoever lowers them, know of a node.
#pragma once

#include "ir/op_def.h"
#include "kernel/selective.h"

namespace tensorgrad {

// Sizes and operands of a node of selective_scan (u, delta, A, bc, and where attrs say so
// `initial`), selective_scan_adjoint (delta, A, bc, dy, where attrs say so `initial`) or
// selective_scan_grad (u, delta, A, bc, states, dy, where attrs say so `ends`), with the shapes
// that kernel/selective.h gives.
struct SelectiveShape {
  SelectiveShape(const OpDef& op, const Shape& delta, const Shape& a, const Attrs& attrs);

  SelectivePart part;
  SelectiveSizes sizes;
  bool zero_order_hold;
  int numbers[kSelectiveInputs];  // of the operands; -1: there is none

  [[nodiscard]] int number(SelectiveInput which) const {
    return numbers[static_cast<std::size_t>(which)];
  }
  [[nodiscard]] int operands() const;
};

}  // namespace tensorgrad
