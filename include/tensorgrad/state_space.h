// SPDX-License-Identifier: MIT
// Ops of state space models (Mamba). Shapes: B batch, L steps, D channels, N states. Names are
// those of the mamba-ssm package; steps come before channels here, as in torch.nn with batch_first.
// All f32. A state that one call gives is what the next call goes on from, and gradients flow
// through it; none is zeros.
#pragma once

#include <optional>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// ---- causal convolution -------------------------------------------------------------------------

struct CausalConv {
  Tensor y;      // [B, L, D]
  Tensor state;  // the last K - 1 inputs, [B, K - 1, D]
};
// Each channel by itself: y[t] = bias + sum over k of weight[k] x[t - (K - 1) + k], so that the
// last weight is that of the step itself (torch.nn.Conv1d with groups = D, without the steps behind
// the end). x [B, L, D], weight [D, K] or [D, 1, K] with K > 1, bias [D], state [B, K - 1, D]: the
// inputs before x.
CausalConv causal_conv1d(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
                         std::optional<Tensor> state = std::nullopt, Loc loc = Loc::current());

// ---- selective scan -----------------------------------------------------------------------------

// What B u weighs in a step: delta, as the published models of Mamba have it, or (e^(delta A) - 1)
// / A, as the paper prints it.
enum class Discretization { kEuler, kZeroOrderHold };

struct SelectiveScanOptions {
  std::optional<Tensor> D = std::nullopt;              // [D]: D u is added to y
  std::optional<Tensor> delta_bias = std::nullopt;     // [D]: added to delta
  bool delta_softplus = false;                         // softplus(delta + delta_bias) for delta
  std::optional<Tensor> initial_state = std::nullopt;  // [B, D, N]
  Discretization discretization = Discretization::kEuler;
};
struct SelectiveScan {
  Tensor y;      // [B, L, D]
  Tensor state;  // after the last step, [B, D, N]
};
// For each batch, channel and state: h[t] = e^(delta[t] A) h[t-1] + w[t] B[t] u[t], and y[t] = sum
// over states of C[t] h[t] (Gu and Dao 2023). u and delta [B, L, D], A [D, N], B and C [B, L, N].
// The B x L x D x N numbers are stored nowhere: for the backward pass one state of 16 is kept. The
// steps are shared among threads of a GPU where channels are few: there e^(delta A) over all steps
// must not overflow, as it cannot for A < 0 and delta > 0.
SelectiveScan selective_scan(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C,
                             const SelectiveScanOptions& options = {}, Loc loc = Loc::current());

}  // namespace tensorgrad
