// SPDX-License-Identifier: MIT
// Transformer blocks whose weights several layers share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensorgrad/nn/causal_attention.h"
#include "tensorgrad/nn/linear.h"
#include "tensorgrad/nn/normalization.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Product of two matrices of low rank, up(down(x)), as in LoRA (Hu et al. 2021), without a scale.
struct LowRankAdapter {
  /// Creates the parameters.
  LowRankAdapter(std::int64_t in, std::int64_t out, std::int64_t rank, Loc loc = Loc::current())
      : down(in, rank, false, loc), up(rank, out, false, loc) {}

  Linear down;  ///< [in] -> [rank], without a bias.
  Linear up;    ///< [rank] -> [out], without a bias.
  TG_MODULE(down, up)

  /// Returns the output: [..., in] -> [..., out].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return up(down(x, loc), loc); }
};

/// Transformer block that several layers share, as in Zamba2 (arXiv 2411.15242): attention over the
/// concatenation of the input and the embedding of the tokens, then a gated MLP with GELU. It has
/// no residual connections. Each layer that uses the block has its own parameters (Use): a
/// projection of the output, and adapters that are added to projections of the block.
struct SharedTransformer {
  /// Options of the shared blocks of a model.
  struct Options {
    std::int64_t blocks = 1;  ///< Number of blocks. The layers that use one take them in turn.
    std::int64_t heads = 4;   ///< Number of heads, which divides 2 * d_model.

    /// Options of the attention. Its `residuals` are those of the block.
    CausalAttention::Options attention = {};

    std::int64_t mlp_width = 0;  ///< Width of the gated MLP; 0: 4 * d_model.
    bool mlp_bias = false;       ///< Adds biases to the MLP.

    /// Rank of the adapters of each layer. There is one for the first matrix of the MLP and, with
    /// `attention_adapters`, one for each of q, k and v; 0: no adapters.
    std::int64_t adapter_rank = 0;

    bool attention_adapters = false;  ///< Adds adapters of q, k and v. Requires `adapter_rank`.
  };

  /// Parameters of one layer that uses a shared block.
  struct Use {
    /// Creates the parameters. `block` is the number of the block that the layer uses.
    Use(std::int64_t d_model, const Options& options, std::int64_t block, Loc loc = Loc::current());

    std::int64_t block;                     ///< Number of the block that the layer uses, from 0.
    std::optional<LowRankAdapter> q, k, v;  ///< Adapters of q, k and v. Set if the options say so.
    std::optional<LowRankAdapter> mlp;      ///< Adapter of `fc1`. Unset if `adapter_rank` is 0.
    Linear out;  ///< Projects the output of the block: [d_model] -> [d_model], without a bias.
    TG_MODULE(q, k, v, mlp, out)
  };

  /// Creates the parameters. `epsilon` is that of the norms. Throws ShapeError like
  /// CausalAttention, whose width is 2 * d_model.
  SharedTransformer(std::int64_t d_model, const Options& options, double epsilon,
                    Loc loc = Loc::current());

  std::int64_t d_model;    ///< Size of the input, of the embedding and of the output.
  std::int64_t mlp_width;  ///< Size of the gate and up projections.
  RMSNorm norm;            ///< Over the input and the embedding: [2 * d_model].

  /// Its input has 2 * d_model components and its output d_model. Scores are divided by
  /// sqrt(d_model / heads), with half of the size of a head.
  CausalAttention attention;

  RMSNorm mlp_norm;  ///< Over the output of the attention: [d_model].
  Linear fc1;        ///< Computes the gate and up projections: [d_model] -> [2 * mlp_width].
  Linear fc2;        ///< The down projection: [mlp_width] -> [d_model].
  TG_MODULE(norm, attention, mlp_norm, fc1, fc2)

  /// Processes the next chunk of each sequence for a layer: x and `embedded` [B, L, d_model] ->
  /// [B, L, d_model]. States and `documents` are those of CausalAttention::run(); each layer has
  /// its own states.
  [[nodiscard]] RecurrentResult run(Tensor x, Tensor embedded, const Use& use,
                                    const std::vector<Tensor>& state,
                                    std::optional<Tensor> documents = std::nullopt,
                                    Loc loc = Loc::current()) const;

  /// Returns the states of run() for a batch size: "k", "v" and "position".
  [[nodiscard]] std::vector<StateSpec> state_specs(std::int64_t batch) const {
    return attention.state_specs(batch);
  }
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
