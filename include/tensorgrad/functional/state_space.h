// SPDX-License-Identifier: MIT
// Ops of state-space models (Mamba): causal convolution and scans over the steps of a sequence.
// Names are those of the mamba-ssm package, but the axis of steps comes before that of channels.
// Shapes: B batch, L steps, D channels, N states per channel. Operands are f32 or f16, and `y` has
// the dtype of the first one; states are f32. To process a sequence in chunks, pass the state that
// one call returns to the next call. Gradients flow through states. A state that is not set counts
// as zeros. Ops throw ShapeError if shapes do not match.
//
// `documents`, i32 [B, L], packs several documents into a row, like `seq_idx` of mamba-ssm: steps
// of a document have the same number, and the next document has another one. States are zero before
// the first step of each document. Only the first document of a row continues from a given state,
// and the returned states are those of the last one. Throws DtypeError if `documents` is not i32.
#pragma once

#include <optional>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// ---- packed documents ---------------------------------------------------------------------------

/// Returns the position of each step in its document, from 0: i32 [B, L] -> i32 [B, L]. A document
/// starts where a number differs from the one before it. Throws DtypeError if `documents` is not
/// i32, and ShapeError if it does not have two axes.
Tensor document_positions(Tensor documents, Loc loc = Loc::current());

// ---- causal convolution -------------------------------------------------------------------------

/// Result of causal_conv1d().
struct CausalConv {
  Tensor y;      ///< [B, L, D].
  Tensor state;  ///< The last K - 1 inputs: [B, K - 1, D].
};

/// Computes a depthwise convolution over past steps: y[t] = bias + sum over k of weight[k]
/// x[t - (K - 1) + k]. The last weight applies to the current step. Equals `torch.nn.Conv1d` with
/// groups = D and padding = K - 1, without the last K - 1 outputs. Shapes: x [B, L, D], weight
/// [D, K] or [D, 1, K] with K > 1, and bias [D]. `state` [B, K - 1, D] holds the inputs before `x`.
/// With `documents`, i32 [B, L], inputs of other documents count as zeros.
CausalConv causal_conv1d(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
                         std::optional<Tensor> state = std::nullopt,
                         std::optional<Tensor> documents = std::nullopt, Loc loc = Loc::current());

// ---- selective scan -----------------------------------------------------------------------------

/// Discretization of the input term of a selective scan: the factor of B u in a step.
enum class Discretization {
  kEuler,         ///< delta, as in the published Mamba models.
  kZeroOrderHold  ///< (e^(delta A) - 1) / A, as in the paper.
};

/// Options of selective_scan().
struct SelectiveScanOptions {
  std::optional<Tensor> D = std::nullopt;              ///< [D]: adds D u to `y`.
  std::optional<Tensor> z = std::nullopt;              ///< [B, L, D]: multiplies `y` by silu(z).
  std::optional<Tensor> delta_bias = std::nullopt;     ///< [D]: added to `delta`.
  bool delta_softplus = false;                         ///< Uses softplus(delta + delta_bias).
  std::optional<Tensor> initial_state = std::nullopt;  ///< [B, D, N].
  Discretization discretization = Discretization::kEuler;  ///< Factor of B u in a step.

  /// i32 [B, L]: the state is zero before each document. Negative deltas count as 0 then.
  std::optional<Tensor> documents = std::nullopt;
};

/// Result of selective_scan().
struct SelectiveScan {
  Tensor y;      ///< [B, L, D].
  Tensor state;  ///< The state after the last step: [B, D, N].
};

/// Computes the selective scan of Mamba (Gu and Dao 2023). For each batch, channel and state,
/// h[t] = e^(delta[t] A) h[t-1] + w[t] B[t] u[t], with the factor w[t] of Discretization. The
/// output y[t] is the sum of C[t] h[t] over the states. With `D` and `z`, it is (y[t] + D u[t])
/// silu(z[t]) (section 3.4). Shapes: u, delta and z [B, L, D], A [D, N], B and C [B, L, N].
///
/// The B x L x D x N states are not stored. The backward pass recomputes them from the state before
/// every 16th step, and with `z` also reads `y` before the gate. If N <= 64 and L > 1, `D` and `z`
/// are applied in the kernel of the scan.
///
/// If there are few channels, a GPU splits the steps among threads. In this case e^(delta A),
/// multiplied over all steps, must not overflow. It cannot if A < 0 and delta > 0.
SelectiveScan selective_scan(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C,
                             const SelectiveScanOptions& options = {}, Loc loc = Loc::current());

// ---- structured state space duality -------------------------------------------------------------

/// Options of ssd().
struct SsdOptions {
  std::int64_t chunk = 64;                             ///< Number of steps per chunk.
  std::optional<Tensor> D = std::nullopt;              ///< [H]: adds D x to `y`.
  std::optional<Tensor> dt_bias = std::nullopt;        ///< [H]: added to `dt`.
  bool dt_softplus = false;                            ///< Uses softplus(dt + dt_bias).
  std::optional<Tensor> initial_state = std::nullopt;  ///< [B, H, P, N].
  std::optional<Tensor> documents = std::nullopt;      ///< i32 [B, L]: packed documents.
};

/// Result of ssd().
struct Ssd {
  Tensor y;      ///< [B, L, H, P].
  Tensor state;  ///< The state after the last step: [B, H, P, N].
};

/// Computes the scan of Mamba-2 (Dao and Gu 2024), like `mamba_chunk_scan_combined` of mamba-ssm.
/// For each batch and head, h[t] = e^(dt[t] A) h[t-1] + dt[t] x[t] B[t]^T and y[t] = h[t] C[t]. One
/// decay applies to all P x N states of a head. Shapes: x [B, L, H, P], dt [B, L, H], A [H] with
/// A < 0, B and C [B, L, G, N]. Head h uses group h G / H, rounded down.
///
/// Within a chunk, `y` is computed by matrix products with the decays between its steps. A
/// recurrence carries the state from chunk to chunk. If dt >= 0, all exponents are at most 0.
/// Throws UserError if SsdOptions::chunk is less than 1.
Ssd ssd(Tensor x, Tensor dt, Tensor A, Tensor B, Tensor C, const SsdOptions& options = {},
        Loc loc = Loc::current());

// ---- trapezoidal scan with rotations ------------------------------------------------------------

/// State that rotary_scan() carries between calls.
struct RotaryState {
  Tensor state;  ///< [B, H, P, N].

  Tensor b;      ///< Rotated B of the previous step: [B, H, R, N].
  Tensor x;      ///< x of the previous step: [B, H, R, P].
  Tensor phase;  ///< Sum of dt theta over all steps so far, modulo 2 pi: [B, H, N / 2].
};

/// Options of rotary_scan().
struct RotaryScanOptions {
  std::int64_t chunk = 64;                                  ///< See SsdOptions::chunk.
  std::optional<RotaryState> initial_state = std::nullopt;  ///< Unset: zeros.
  std::optional<Tensor> documents = std::nullopt;           ///< i32 [B, L]: packed documents.
};

/// Result of rotary_scan().
struct RotaryScan {
  Tensor y;           ///< [B, L, H, R, P].
  RotaryState state;  ///< The state after the last step.
};

/// Computes the scan of Mamba-3 (arXiv 2603.15569, propositions 1 to 4). For each batch and head,
/// let a[t] = e^(dt[t] A[t]), and let v[t] be the sum of the outer products x[t] B[t]^T over the R
/// ranks. Then h[t] = a[t] h[t-1] + (1 - lambda[t]) dt[t] a[t] v[t-1] + lambda[t] dt[t] v[t], and
/// y[t] = h[t] C[t] for each rank. With lambda = 1 this is the recurrence of ssd(); lambda = 1/2 is
/// the trapezoidal rule.
///
/// Before the scan, elements i and i + N / 2 of B[t] and C[t] are rotated by minus the sum of dt
/// theta over the steps up to t. This is equivalent to complex states. Shapes: x [B, L, H, R, P],
/// dt, A and lambda [B, L, H] with A < 0, theta [B, L, H, N / 2], B and C [B, L, H, R, N] with an
/// even N. Throws UserError if RotaryScanOptions::chunk is less than 1.
RotaryScan rotary_scan(Tensor x, Tensor dt, Tensor A, Tensor lambda, Tensor theta, Tensor B,
                       Tensor C, const RotaryScanOptions& options = {}, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
