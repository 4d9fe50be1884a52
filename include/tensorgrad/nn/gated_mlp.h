// SPDX-License-Identifier: MIT
// MLPs of language models.
#pragma once

#include <cstdint>

#include "tensorgrad/nn/linear.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Gated MLP (SwiGLU, Shazeer 2020): down(silu(gate(x)) * up(x)).
struct GatedMlp {
  /// Creates the parameters. `width` is the size of gate(x) and of up(x). For `residuals`, see
  /// MambaOptions::residuals. `bias` adds biases to all projections.
  GatedMlp(std::int64_t d_model, std::int64_t width, std::int64_t residuals = 1, bool bias = false,
           Loc loc = Loc::current());

  std::int64_t width;  ///< Size of gate(x) and of up(x).
  Linear fc1;          ///< Computes gate(x), then up(x): [d_model] -> [2 * width].
  Linear fc2;          ///< The down projection: [width] -> [d_model].
  TG_MODULE(fc1, fc2)

  /// Returns the output: [..., d_model] -> [..., d_model].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// MLP with biases, as in GPT-2: fc2(gelu(fc1(x))), with the tanh approximation of gelu().
struct GeluMlp {
  /// Creates the parameters. `width` is the size of fc1(x). For `residuals`, see
  /// MambaOptions::residuals.
  GeluMlp(std::int64_t d_model, std::int64_t width, std::int64_t residuals = 1,
          Loc loc = Loc::current());

  Linear fc1;  ///< [d_model] -> [width].
  Linear fc2;  ///< [width] -> [d_model].
  TG_MODULE(fc1, fc2)

  /// Returns the output: [..., d_model] -> [..., d_model].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
