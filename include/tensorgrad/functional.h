// SPDX-License-Identifier: MIT
// Ops of networks, written with other ops: activations, normalisation, losses.
#pragma once

#include <optional>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// ---- activations and normalisation -------------------------------------------------------------

// exp(x) / sum(exp(x)) along an axis, stable; a row of -inf alone gives NaN, as in PyTorch.
Tensor softmax(Tensor x, int axis = -1, Loc loc = Loc::current());
// log(softmax(x)), stable; an element -inf gives -inf.
Tensor log_softmax(Tensor x, int axis = -1, Loc loc = Loc::current());
enum class Gelu { kExact, kTanh };
// x * Phi(x) (Hendrycks and Gimpel 2016), or its tanh approximation.
Tensor gelu(Tensor x, Gelu form = Gelu::kExact, Loc loc = Loc::current());
// x * sigmoid(x).
Tensor silu(Tensor x, Loc loc = Loc::current());
// (x - mean) / sqrt(var + eps) * weight + bias over the last axis (Ba, Kiros and Hinton 2016).
Tensor layer_norm(Tensor x, std::optional<Tensor> weight = std::nullopt,
                  std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                  Loc loc = Loc::current());
// Zero with probability p, else x / (1 - p); another pattern at each step.
Tensor dropout(Tensor x, double p, Loc loc = Loc::current());

// ---- losses ------------------------------------------------------------------------------------

enum class Reduction { kMean, kSum, kNone };
// Mean over all elements of (a - b)^2.
Tensor mse(Tensor a, Tensor b, Reduction reduction = Reduction::kMean, Loc loc = Loc::current());
// -log softmax(logits)[target]; logits [..., C], targets i32 [...]. -inf logits are fine where they
// are not the target.
Tensor cross_entropy(Tensor logits, Tensor targets, Reduction reduction = Reduction::kMean,
                     Loc loc = Loc::current());

}  // namespace tensorgrad
