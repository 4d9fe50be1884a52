// SPDX-License-Identifier: MIT
// NaN and infinity in packed documents.
#pragma once

#include <limits>

#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

// Spoiled steps of packed documents: the first step with NaN or infinity in a document, and all
// later ones. Matrix products in a mixer multiply values of one document by zeros for the others,
// and NaN * 0 is NaN. So steps that are not finite are zeroed before the mixer, and spoiled steps
// are set to NaN in its output.
class SpoiledSteps {
 public:
  // Zeroes the steps of x [B, L, D] that are not finite.
  SpoiledSteps(Tensor& x, Tensor documents, Loc loc) : steps_(take_out(x, documents, loc)) {}

  // Sets the spoiled steps of x [B, L, D] to NaN.
  [[nodiscard]] Tensor put_back(Tensor x, Loc loc) const {
    return where(unsqueeze(steps_, -1, loc), kNan, x);
  }
  // Sets a state [B, ...] after the last step to NaN if that step is spoiled.
  [[nodiscard]] Tensor put_back_last(Tensor state, Loc loc) const {
    Shape rows(state.shape(loc).size(), 1);
    rows[0] = state.size(0, loc);
    const Tensor last = narrow(steps_, 1, steps_.size(1, loc) - 1, 1, loc);
    return where(reshape(last, rows, loc), kNan, state);
  }

 private:
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  static Tensor take_out(Tensor& x, Tensor documents, Loc loc) {
    const Tensor finite = all(isfinite(Operand(x, loc)), -1, true, loc);  // [B, L, 1]
    x = where(finite, x, 0.0);
    const Tensor step = iota(documents.shape(loc), 1, i32, loc);
    const Tensor last = cummax(where(squeeze(finite, -1, loc), -1, step), 1, loc).values;
    return last >= step - document_positions(documents, loc);
  }

  Tensor steps_;  // bool [B, L]
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
