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
  std::optional<Tensor> z = std::nullopt;              // [B, L, D]: then y is multiplied by silu(z)
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
// over states of C[t] h[t] (Gu and Dao 2023); with D and z, which is what gates a block of Mamba
// (section 3.4), y[t] = (that + D u[t]) silu(z[t]), by the launches of the scan where it has all
// states, 64 at most, and several steps. u, delta and z [B, L, D], A [D, N], B and C [B, L, N]. The
// B x L x D x N numbers are stored nowhere: for the backward pass one state of 16 is kept, and with
// z y before its gate. The steps are shared among threads of a GPU where channels are few: there
// e^(delta A) over all steps must not overflow, as it cannot for A < 0 and delta > 0.
SelectiveScan selective_scan(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C,
                             const SelectiveScanOptions& options = {}, Loc loc = Loc::current());

// ---- structured state space duality -------------------------------------------------------------

struct SsdOptions {
  std::int64_t chunk = 64;                 // steps whose results are made by products of matrices
  std::optional<Tensor> D = std::nullopt;  // [H]: D x is added to y
  std::optional<Tensor> dt_bias = std::nullopt;        // [H]: added to dt
  bool dt_softplus = false;                            // softplus(dt + dt_bias) for dt
  std::optional<Tensor> initial_state = std::nullopt;  // [B, H, P, N]
};
struct Ssd {
  Tensor y;      // [B, L, H, P]
  Tensor state;  // after the last step, [B, H, P, N]
};
// For each batch and head, with one decay for all its P x N states: h[t] = e^(dt[t] A) h[t-1] +
// dt[t] x[t] B[t]^T, y[t] = h[t] C[t] (Dao and Gu 2024, mamba_chunk_scan_combined). x [B, L, H, P],
// dt [B, L, H], A [H] below 0, B and C [B, L, G, N], of which group h G / H serves head h. Within
// chunks y is a product of matrices whose entries are decays between two of its steps; a state goes
// from chunk to chunk. No exponent is above 0 where dt is not below it.
Ssd ssd(Tensor x, Tensor dt, Tensor A, Tensor B, Tensor C, const SsdOptions& options = {},
        Loc loc = Loc::current());

// ---- trapezoidal scan with rotations
// --------------------------------------------------------------

// What a rotary_scan() goes on from. Of the step before: B as it was turned [B, H, R, N], x [B, H,
// R, P]; phase [B, H, N / 2].
struct RotaryState {
  Tensor state;  // [B, H, P, N]
  Tensor b, x, phase;
};
struct RotaryScanOptions {
  std::int64_t chunk = 64;
  std::optional<RotaryState> initial_state = std::nullopt;
};
struct RotaryScan {
  Tensor y;  // [B, L, H, R, P]
  RotaryState state;
};
// The scan of Mamba-3 (arXiv 2603.15569, propositions 1 to 4). For each batch and head, with a[t] =
// e^(dt[t] A[t]) and the outer products v[t] = sum over ranks of x[t] B[t]^T: h[t] = a[t] h[t-1] +
// (1 - lambda[t]) dt[t] a[t] v[t-1] + lambda[t] dt[t] v[t], y[t] = h[t] C[t] for each rank. lambda
// = 1 is ssd(), 1/2 the rule of trapezoids. B and C are turned before: elements i and i + N / 2 by
// minus the sum of dt theta over all steps so far, which is what states that are complex numbers
// come to. x [B, L, H, R, P]; dt, A (below 0) and lambda [B, L, H]; theta [B, L, H, N / 2]; B and C
// [B, L, H, R, N].
RotaryScan rotary_scan(Tensor x, Tensor dt, Tensor A, Tensor lambda, Tensor theta, Tensor B,
                       Tensor C, const RotaryScanOptions& options = {}, Loc loc = Loc::current());

}  // namespace tensorgrad
