// SPDX-License-Identifier: MIT
// Multi-head attention and transformer layers, with the parameters, names and initial values of
// torch.nn. Sequences are [B, T, size], as with `batch_first` in PyTorch.
#pragma once

#include <optional>

#include "tensorgrad/nn/activations.h"
#include "tensorgrad/nn/linear.h"
#include "tensorgrad/nn/normalization.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Masks of an attention layer. They can be combined.
struct MaskOptions {
  bool causal = false;  ///< Query i attends to keys 0 to i only.

  /// A boolean mask, true if a query may attend to a key (the opposite of PyTorch's layers), or an
  /// f32 mask, which is added to the scores. It broadcasts to [B, heads, T, S].
  std::optional<Tensor> mask = std::nullopt;

  /// Boolean [B, S], or [S] for unbatched inputs: true if a key is padding, to which no query may
  /// attend.
  std::optional<Tensor> key_padding_mask = std::nullopt;
};

/// Multi-head attention (torch.nn.MultiheadAttention), optionally with grouped queries.
///
/// The inputs are projected to queries, keys and values, and `out_proj` projects the concatenated
/// heads. Each key-value head serves heads / kv_heads query heads. In shapes, kv_size is size *
/// kv_heads / heads.
///
/// Initial values: Xavier-uniform for the input projections, Xavier-normal for `bias_k` and
/// `bias_v`, and 0 for the other biases. `out_proj.weight` is initialized as in Linear.
struct MultiheadAttention {
  /// Options of the layer.
  struct Options {
    double dropout = 0;               ///< Dropout of the attention weights, in [0, 1].
    bool bias = true;                 ///< Biases of the projections.
    std::int64_t kv_heads = 0;        ///< Number of key-value heads; 0: `heads`.
    std::int64_t kdim = 0, vdim = 0;  ///< Sizes of keys and values; 0: `size`.

    /// Adds a learned key `bias_k` and value `bias_v` to each sequence. Every query may attend to
    /// it.
    bool add_bias_kv = false;

    bool add_zero_attn = false;  ///< Adds a key and a value of zeros to each sequence.
  };

  /// Result of with_weights().
  struct Output {
    Tensor output;   ///< [B, T, size].
    Tensor weights;  ///< [B, T, S], the mean over the heads, or [B, heads, T, S].
  };

  /// Creates the parameters. Throws ShapeError if `heads` does not divide `size`, or `kv_heads`
  /// does not divide `heads`.
  MultiheadAttention(std::int64_t size, std::int64_t heads, const Options& options,
                     Loc loc = Loc::current());
  MultiheadAttention(std::int64_t size, std::int64_t heads, Loc loc = Loc::current());

  std::int64_t size;        ///< Size of queries and of the output.
  std::int64_t heads;       ///< Number of query heads.
  std::int64_t kv_heads;    ///< Number of key-value heads.
  std::int64_t kdim, vdim;  ///< Sizes of keys and of values.
  double dropout;           ///< See Options::dropout.
  bool add_zero_attn;       ///< See Options::add_zero_attn.

  /// Weights of the projections to queries, keys and values, in this order: [size + 2 kv_size,
  /// size]. Unset if `kdim` or `vdim` differs from `size`.
  std::optional<Parameter> in_proj_weight;

  std::optional<Parameter> q_proj_weight;   ///< [size, size]. Set if `in_proj_weight` is not.
  std::optional<Parameter> k_proj_weight;   ///< [kv_size, kdim]. Set if `in_proj_weight` is not.
  std::optional<Parameter> v_proj_weight;   ///< [kv_size, vdim]. Set if `in_proj_weight` is not.
  std::optional<Parameter> in_proj_bias;    ///< [size + 2 kv_size]. Set if Options::bias is.
  std::optional<Parameter> bias_k, bias_v;  ///< [1, 1, kv_size]. Set if Options::add_bias_kv is.
  Linear out_proj;                          ///< Projects the concatenated heads: [size] -> [size].
  TG_MODULE(in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k,
            bias_v, out_proj)

  /// Returns the attention of `query` to `key` and `value`: [B, T, size], [B, S, kdim] and
  /// [B, S, vdim] -> [B, T, size]. Unbatched inputs, without axis B, are also allowed. With one
  /// argument, computes self-attention. Throws ShapeError if a shape does not match.
  Tensor operator()(Tensor query, Tensor key, Tensor value, const MaskOptions& masks = {},
                    Loc loc = Loc::current()) const;
  Tensor operator()(Tensor x, const MaskOptions& masks = {}, Loc loc = Loc::current()) const {
    return (*this)(x, x, x, masks, loc);
  }

  /// Returns the output and the attention weights, like `need_weights` in PyTorch. If `average`,
  /// returns the mean of the weights over the heads. The weights are those after dropout. The last
  /// keys are `bias_k` and the zeros of `add_zero_attn`. The weights are stored and have a
  /// gradient.
  Output with_weights(Tensor query, Tensor key, Tensor value, const MaskOptions& masks = {},
                      bool average = true, Loc loc = Loc::current()) const;

 private:
  struct Heads {
    Tensor q, k, v;  // [B, heads or kv_heads, T or S, D]
    MaskOptions masks;
  };
  [[nodiscard]] Heads project(Tensor query, Tensor key, Tensor value, const MaskOptions& masks,
                              Loc loc) const;
  [[nodiscard]] Tensor projected(Tensor x, const std::optional<Parameter>& own, std::int64_t first,
                                 std::int64_t parts, Loc loc) const;
  [[nodiscard]] Tensor joined(Tensor heads_of, Loc loc) const;
  void check(Tensor query, Tensor key, Tensor value, Loc loc) const;
};

/// Options of TransformerEncoderLayer and TransformerDecoderLayer.
struct TransformerOptions {
  std::int64_t dim_feedforward = 2048;  ///< Inner size of the feed-forward network.

  /// Dropout of the attention weights, of the activations of the feed-forward network and of the
  /// output of each sublayer, in [0, 1].
  double dropout = 0.1;

  bool norm_first = false;       ///< Normalizes before each sublayer instead of after it.
  bool gelu = false;             ///< Uses the activation gelu() instead of relu().
  double layer_norm_eps = 1e-5;  ///< Added to the variance in layer normalization.
};

/// Transformer encoder layer (torch.nn.TransformerEncoderLayer): self-attention and a feed-forward
/// network of two layers. Both have a residual connection, dropout and layer normalization.
struct TransformerEncoderLayer {
  /// Creates the parameters. Throws ShapeError if `heads` does not divide `size`.
  TransformerEncoderLayer(std::int64_t size, std::int64_t heads,
                          const TransformerOptions& options = {}, Loc loc = Loc::current());

  MultiheadAttention self_attn;  ///< Attention of `x` to itself.
  Linear linear1;                ///< [size] -> [dim_feedforward].
  Linear linear2;                ///< [dim_feedforward] -> [size].
  LayerNorm norm1, norm2;        ///< Norms of the two sublayers, over the last axis.
  TransformerOptions options;    ///< Options of the constructor.
  TG_MODULE(self_attn, linear1, linear2, norm1, norm2)

  /// Returns the output of the layer: [B, T, size] -> [B, T, size].
  Tensor operator()(Tensor x, const MaskOptions& masks = {}, Loc loc = Loc::current()) const;
};

/// Transformer decoder layer (torch.nn.TransformerDecoderLayer): an encoder layer with attention to
/// `memory`, the output of an encoder, between its two sublayers.
struct TransformerDecoderLayer {
  /// Creates the parameters. Throws ShapeError if `heads` does not divide `size`.
  TransformerDecoderLayer(std::int64_t size, std::int64_t heads,
                          const TransformerOptions& options = {}, Loc loc = Loc::current());

  MultiheadAttention self_attn;       ///< Attention of `x` to itself.
  MultiheadAttention multihead_attn;  ///< Attention of `x` to `memory`.
  Linear linear1;                     ///< [size] -> [dim_feedforward].
  Linear linear2;                     ///< [dim_feedforward] -> [size].
  LayerNorm norm1, norm2, norm3;      ///< Norms of the three sublayers, over the last axis.
  TransformerOptions options;         ///< Options of the constructor.
  TG_MODULE(self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3)

  /// Returns the output of the layer: x [B, T, size] and memory [B, S, size] -> [B, T, size].
  Tensor operator()(Tensor x, Tensor memory, const MaskOptions& masks = {},
                    const MaskOptions& memory_masks = {}, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
