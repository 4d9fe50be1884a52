// SPDX-License-Identifier: MIT
// Mixture of gated MLPs.
#pragma once

#include <cstdint>

#include "tensorgrad/nn/linear.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Mixture of gated MLPs (Shazeer et al. 2017), routed as in Jamba: sum of p_e expert_e(x) over the
/// `top_k` experts with the largest p = softmax(router(x)). The p_e are not normalized again. Among
/// equal ones, the first are chosen.
///
/// Every expert is computed for every token, and those that are not chosen are multiplied by 0. So
/// the result is that of sparse experts if all values are finite, but a token takes the time of all
/// experts. There is no auxiliary loss that balances the experts.
struct MixtureOfExperts {
  /// Options of the layer.
  struct Options {
    std::int64_t experts = 8;    ///< Number of experts.
    std::int64_t top_k = 2;      ///< Number of experts per token.
    std::int64_t width = 0;      ///< Width of each; 0: 8/3 of d_model, up to a multiple of 8.
    std::int64_t residuals = 1;  ///< See MambaOptions::residuals.
  };

  /// Creates the parameters. Throws UserError unless 1 <= top_k <= experts.
  MixtureOfExperts(std::int64_t d_model, const Options& options, Loc loc = Loc::current());

  Options options;     ///< Options of the constructor.
  std::int64_t width;  ///< Inner size of each expert, not 0.
  Linear router;       ///< Computes the logits of the experts: [d_model] -> [experts].

  /// Computes gate(x) of all experts, then up(x) of all experts: [d_model] -> [2 * experts *
  /// width].
  Linear fc1;

  /// Down projections of all experts, whose weights are adjacent: [experts * width] -> [d_model].
  Linear fc2;
  TG_MODULE(router, fc1, fc2)

  /// Returns the factors of the experts, 0 for those that are not chosen: [..., d_model] ->
  /// [..., experts].
  [[nodiscard]] Tensor routing(Tensor x, Loc loc = Loc::current()) const;

  /// Returns the output: [..., d_model] -> [..., d_model].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
