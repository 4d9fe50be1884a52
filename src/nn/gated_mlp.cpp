// SPDX-License-Identifier: MIT
#include "tensorgrad/nn/gated_mlp.h"

#include "nn/mixer_parts.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

GatedMlp::GatedMlp(std::int64_t d_model, std::int64_t inner, std::int64_t residuals, bool bias,
                   Loc loc)
    : width(inner),
      fc1(d_model, 2 * inner, bias, loc),
      fc2(scaled_linear(inner, d_model, residuals, loc, bias)) {}

Tensor GatedMlp::operator()(Tensor x, Loc loc) const {
  const Tensor both = fc1(x, loc);
  const Tensor gate = narrow(both, -1, 0, width, loc), up = narrow(both, -1, width, width, loc);
  return fc2(silu(gate, loc) * up, loc);
}

GeluMlp::GeluMlp(std::int64_t d_model, std::int64_t width, std::int64_t residuals, Loc loc)
    : fc1(d_model, width, true, loc), fc2(scaled_linear(width, d_model, residuals, loc, true)) {}

Tensor GeluMlp::operator()(Tensor x, Loc loc) const {
  return fc2(gelu(fc1(x, loc), GeluApproximation::kTanh, loc), loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
