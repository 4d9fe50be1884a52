// SPDX-License-Identifier: MIT
// Mamba, Mamba-2 and Mamba-3 blocks. Shapes: B batch, L steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensorgrad/functional/state_space.h"
#include "tensorgrad/nn/linear.h"
#include "tensorgrad/nn/normalization.h"
#include "tensorgrad/nn/recurrent_state.h"
#include "tensorgrad/nn/vision.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Options of Mamba.
struct MambaOptions {
  std::int64_t d_state = 16;  ///< Number of states per channel.
  std::int64_t d_conv = 4;    ///< Number of taps of the convolution, at least 2.
  std::int64_t expand = 2;    ///< Number of inner channels, as a multiple of d_model.
  std::int64_t dt_rank = 0;   ///< Rank of the projection to delta; 0: d_model / 16, rounded up.
  bool bias = false;          ///< Biases of `in_proj` and `out_proj`.
  bool conv_bias = true;      ///< Bias of `conv1d`.
  bool x_bias = false;        ///< Bias of `x_proj`.

  /// Factor of the input in a step of the scan.
  Discretization discretization = Discretization::kEuler;

  /// Initial range of softplus(dt_proj.bias): log-uniform in [dt_min, dt_max), but at least
  /// dt_floor.
  double dt_min = 1e-3, dt_max = 0.1, dt_floor = 1e-4;

  /// Number of additions to the residual stream in the whole model. The initial weight of
  /// `out_proj` is divided by its square root.
  std::int64_t residuals = 1;

  /// Normalizes the results of `x_proj` (the input of `dt_proj`, B and C) with rms_norm() without
  /// weights, as in Falcon-Mamba.
  bool b_c_dt_norm = false;
  double norm_epsilon = 1e-6;  ///< Epsilon of these norms.

  /// These norms have weights, as in Jamba. Only with `b_c_dt_norm`.
  bool b_c_dt_norm_weights = false;
};

/// Mamba block (Gu and Dao 2023). `in_proj` computes x and a gate z. A causal convolution and
/// silu() are applied to x. From the result, `x_proj` and `dt_proj` compute delta, B and C.
/// selective_scan() follows, with z as its gate, and then `out_proj`.
struct Mamba {
  /// Creates the parameters. Throws ShapeError if `d_conv` is less than 2, and UserError if
  /// `b_c_dt_norm_weights` is set without `b_c_dt_norm`.
  explicit Mamba(std::int64_t d_model, const MambaOptions& options = {}, Loc loc = Loc::current());

  MambaOptions options;  ///< Options of the constructor.
  std::int64_t d_model;  ///< Size of the input and of the output.
  std::int64_t d_inner;  ///< Number of inner channels: expand * d_model.
  std::int64_t dt_rank;  ///< Rank of the projection to delta, not 0.
  Parameter A_log;       ///< log(-A): [d_inner, d_state], initialized to log(n + 1) for state n.
  Parameter D;           ///< [d_inner], initialized to 1.
  Linear in_proj;        ///< Computes x, then z: [d_model] -> [2 * d_inner].
  Conv1d conv1d;         ///< Depthwise, with a weight [d_inner, 1, d_conv].
  Linear x_proj;         ///< [d_inner] -> [dt_rank + 2 * d_state]: input of `dt_proj`, B and C.
  Linear dt_proj;        ///< Computes delta: [dt_rank] -> [d_inner], with a bias.
  Linear out_proj;       ///< [d_inner] -> [d_model].

  std::optional<RMSNorm> dt_norm;         ///< [dt_rank]. See MambaOptions::b_c_dt_norm_weights.
  std::optional<RMSNorm> b_norm, c_norm;  ///< [d_state]. See MambaOptions::b_c_dt_norm_weights.
  TG_MODULE(A_log, D, in_proj, conv1d, x_proj, dt_proj, out_proj, dt_norm, b_norm, c_norm)

  /// Returns the output for whole sequences: [B, L, d_model] -> [B, L, d_model].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const {
    return run(x, {}, std::nullopt, loc).y;
  }
  /// Returns the output for packed documents: [B, L, d_model] -> [B, L, d_model]. See run().
  Tensor operator()(Tensor x, Tensor documents, Loc loc = Loc::current()) const {
    return run(x, {}, documents, loc).y;
  }

  /// Processes the next chunk of each sequence, starting from `state`, and returns the output with
  /// the new states. An empty `state` starts new sequences. With `documents`, i32 [B, L], each row
  /// packs several documents, as in selective_scan() and causal_conv1d().
  [[nodiscard]] RecurrentResult run(Tensor x, const std::vector<Tensor>& state,
                                    std::optional<Tensor> documents = std::nullopt,
                                    Loc loc = Loc::current()) const;

  /// Returns the states of run() for a batch size: "conv" and "ssm".
  [[nodiscard]] std::vector<StateSpec> state_specs(std::int64_t batch) const;
};

/// Options of Mamba2.
struct Mamba2Options {
  std::int64_t d_state = 128;    ///< Number of states per channel.
  std::int64_t d_conv = 4;       ///< Number of taps of the convolution, at least 2.
  std::int64_t expand = 2;       ///< Number of inner channels, as a multiple of d_model.
  std::int64_t head_dim = 64;    ///< Number of channels per head.
  std::int64_t groups = 1;       ///< Number of groups of heads. Heads of a group share B and C.
  std::int64_t chunk = 64;       ///< See SsdOptions::chunk.
  bool bias = false;             ///< Biases of `in_proj` and `out_proj`.
  bool conv_bias = true;         ///< Bias of `conv1d`.
  double a_min = 1, a_max = 16;  ///< Initial range of exp(A_log), uniform.

  /// Initial range of softplus(dt_bias); see MambaOptions.
  double dt_min = 1e-3, dt_max = 0.1, dt_floor = 1e-4;

  /// Bounds to which dt is clamped after softplus. If dt_limit_max is 0, there is no upper bound.
  double dt_limit_min = 0, dt_limit_max = 0;

  double norm_epsilon = 1e-5;  ///< Epsilon of `norm`.
  std::int64_t residuals = 1;  ///< See MambaOptions::residuals.
};

/// Mamba-2 block (Dao and Gu 2024). `in_proj` computes a gate z, x, B, C and dt. A causal
/// convolution and silu() are applied to x, B and C. ssd() follows, with one decay per head. `norm`
/// normalizes y silu(z) over the channels of each group, and `out_proj` computes the output.
struct Mamba2 {
  /// Creates the parameters. Throws ShapeError if `d_conv` is less than 2, `head_dim` does not
  /// divide expand * d_model, or `groups` does not divide the number of heads.
  explicit Mamba2(std::int64_t d_model, const Mamba2Options& options = {},
                  Loc loc = Loc::current());

  Mamba2Options options;  ///< Options of the constructor.
  std::int64_t d_model;   ///< Size of the input and of the output.
  std::int64_t d_inner;   ///< Number of inner channels: expand * d_model.
  std::int64_t heads;     ///< Number of heads: d_inner / head_dim.
  std::int64_t d_conv;  ///< Number of channels of the convolution: d_inner + 2 * groups * d_state.
  Linear in_proj;       ///< Computes z, x, B, C and dt: [d_model] -> [d_inner + d_conv + heads].
  Conv1d conv1d;        ///< Depthwise, with a weight [d_conv, 1, Mamba2Options::d_conv].
  Parameter dt_bias;    ///< [heads]. Added to dt before softplus.
  Parameter A_log;      ///< log(-A): [heads].
  Parameter D;          ///< [heads], initialized to 1.
  RMSNorm norm;         ///< Its weight is [d_inner].
  Linear out_proj;      ///< [d_inner] -> [d_model].
  TG_MODULE(in_proj, conv1d, dt_bias, A_log, D, norm, out_proj)

  /// Returns the output for whole sequences: [B, L, d_model] -> [B, L, d_model].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const {
    return run(x, {}, std::nullopt, loc).y;
  }
  /// Returns the output for packed documents: [B, L, d_model] -> [B, L, d_model]. See run().
  Tensor operator()(Tensor x, Tensor documents, Loc loc = Loc::current()) const {
    return run(x, {}, documents, loc).y;
  }

  /// Processes the next chunk of each sequence; see Mamba::run().
  [[nodiscard]] RecurrentResult run(Tensor x, const std::vector<Tensor>& state,
                                    std::optional<Tensor> documents = std::nullopt,
                                    Loc loc = Loc::current()) const;

  /// Returns the states of run() for a batch size: "conv" and "ssm".
  [[nodiscard]] std::vector<StateSpec> state_specs(std::int64_t batch) const;
};

/// Optional norm of Mamba3 between the scan and `out_proj`. In the paper, pure Mamba-3 models have
/// none. Hybrid models use kBeforeGate, for texts longer than those of training.
enum class OutNorm : std::uint8_t {
  kNone,        ///< No norm.
  kBeforeGate,  ///< norm(y) silu(z), over the channels of each head and rank.
  kAfterGate,   ///< norm(y silu(z)), over all channels, as in Mamba-2.
};

/// Function that computes the rate of decay of Mamba3, -A, from the projected a.
enum class DecayActivation : std::uint8_t {
  kSoftplus,  ///< softplus(a + A_bias), as in the paper.

  /// max(f(a), a_floor) with f(a) = 1 + a if a >= 0, else 1 / (1 - a), without `A_bias`. mamba-ssm
  /// trains so now, for stability at high learning rates.
  kHeavyTail
};

/// Options of Mamba3.
struct Mamba3Options {
  std::int64_t d_state = 128;         ///< Number of states per channel, an even number.
  std::int64_t expand = 2;            ///< Number of inner channels, as a multiple of d_model.
  std::int64_t head_dim = 64;         ///< Number of channels per head.
  std::int64_t ranks = 1;             ///< Inputs and outputs per head and step (MIMO rank).
  std::int64_t chunk = 64;            ///< See RotaryScanOptions::chunk.
  OutNorm out_norm = OutNorm::kNone;  ///< Norm of the output of the scan.
  double a_min = 1, a_max = 16;       ///< Initial range of softplus(A_bias), log-uniform.

  /// Initial range of softplus(dt_bias); see MambaOptions.
  double dt_min = 1e-3, dt_max = 0.1, dt_floor = 1e-4;

  double norm_epsilon = 1e-5;                          ///< Epsilon of all norms of the block.
  std::int64_t residuals = 1;                          ///< See MambaOptions::residuals.
  DecayActivation decay = DecayActivation::kSoftplus;  ///< Function that computes -A.
  double a_floor = 1e-4;  ///< Lower bound of -A. Only for DecayActivation::kHeavyTail.
};

/// Mamba-3 block (arXiv 2603.15569), which has no convolution. `in_proj` computes a gate z, x, dt,
/// A, lambda and theta, and B and C for each rank. B and C are normalized, and each head adds
/// biases to them. rotary_scan() follows, then D x is added and the result is multiplied by
/// silu(z). `out_proj` computes the output. A norm is optional (OutNorm).
///
/// With several ranks, each rank scales x and z by `mimo_x` and `mimo_z`. The outputs of the ranks
/// are summed with the factors `mimo_out`.
struct Mamba3 {
  /// Creates the parameters. Throws ShapeError if `head_dim` does not divide expand * d_model,
  /// `d_state` is odd, or `ranks` is less than 1.
  explicit Mamba3(std::int64_t d_model, const Mamba3Options& options = {},
                  Loc loc = Loc::current());

  Mamba3Options options;  ///< Options of the constructor.
  std::int64_t d_model;   ///< Size of the input and of the output.
  std::int64_t d_inner;   ///< Number of inner channels: expand * d_model.
  std::int64_t heads;     ///< Number of heads: d_inner / head_dim.

  /// Computes z, x, B, C, dt, A, lambda and theta, in this order: [d_model] -> [2 * d_inner + 2 *
  /// ranks * d_state + 3 * heads + d_state / 2].
  Linear in_proj;

  RMSNorm b_norm, c_norm;           ///< Over `d_state`.
  Parameter b_bias, c_bias;         ///< [heads, ranks, d_state], initialized to 1.
  Parameter dt_bias;                ///< [heads]. Added to the projected dt before softplus.
  std::optional<Parameter> A_bias;  ///< [heads]. Unset for DecayActivation::kHeavyTail.
  Parameter D;                      ///< [heads], initialized to 1.

  std::optional<Parameter> mimo_x, mimo_z, mimo_out;  ///< [heads, ranks, head_dim], if ranks > 1.
  std::optional<RMSNorm> norm;  ///< Its weight is [d_inner]. Unset for OutNorm::kNone.
  Linear out_proj;              ///< [d_inner] -> [d_model], without a bias.
  TG_MODULE(in_proj, b_norm, c_norm, b_bias, c_bias, dt_bias, A_bias, D, mimo_x, mimo_z, mimo_out,
            norm, out_proj)

  /// Returns the output for whole sequences: [B, L, d_model] -> [B, L, d_model].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const {
    return run(x, {}, std::nullopt, loc).y;
  }
  /// Returns the output for packed documents: [B, L, d_model] -> [B, L, d_model]. See run().
  Tensor operator()(Tensor x, Tensor documents, Loc loc = Loc::current()) const {
    return run(x, {}, documents, loc).y;
  }

  /// Processes the next chunk of each sequence; see Mamba::run().
  [[nodiscard]] RecurrentResult run(Tensor x, const std::vector<Tensor>& state,
                                    std::optional<Tensor> documents = std::nullopt,
                                    Loc loc = Loc::current()) const;

  /// Returns the states of run() for a batch size: "ssm", "b", "x" and "phase".
  [[nodiscard]] std::vector<StateSpec> state_specs(std::int64_t batch) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
