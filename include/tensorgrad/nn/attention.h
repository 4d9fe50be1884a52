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
/// `in_proj_weight` [size + 2 kv_size, size] and `in_proj_bias` project the inputs to queries, keys
/// and values, in this order. `out_proj` projects the concatenated heads. kv_size is size *
/// kv_heads / heads; each key-value head serves heads / kv_heads query heads. If `kdim` or `vdim`
/// differs from `size`, `q_proj_weight` [size, size], `k_proj_weight` [kv_size, kdim] and
/// `v_proj_weight` [kv_size, vdim] replace `in_proj_weight`.
///
/// Initial values: Xavier-uniform for the input projections, Xavier-normal for `bias_k` and
/// `bias_v`, and 0 for the other biases. `out_proj.weight` is initialized as in Linear.
struct MultiheadAttention {
  /// Options of the layer.
  struct Options {
    double dropout = 0;               ///< Dropout of the attention weights.
    bool bias = true;                 ///< Biases of the projections.
    std::int64_t kv_heads = 0;        ///< Number of key-value heads; 0: `heads`.
    std::int64_t kdim = 0, vdim = 0;  ///< Sizes of keys and values; 0: `size`.

    /// Adds a learned key `bias_k` and value `bias_v` [1, 1, kv_size] to each sequence. Every query
    /// may attend to it.
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

  std::int64_t size, heads, kv_heads, kdim, vdim;
  double dropout;
  bool add_zero_attn;
  std::optional<Parameter> in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight;
  std::optional<Parameter> in_proj_bias, bias_k, bias_v;
  Linear out_proj;
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

  /// Returns the output and the attention weights, as `need_weights` in PyTorch. If `average`,
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
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  bool norm_first = false;  ///< Normalizes before each sublayer instead of after it.
  bool gelu = false;        ///< Uses the activation gelu() instead of relu().
  double layer_norm_eps = 1e-5;
};

/// Transformer encoder layer (torch.nn.TransformerEncoderLayer): self-attention and a feed-forward
/// network of two layers. Both have a residual connection, dropout and layer normalization.
struct TransformerEncoderLayer {
  /// Creates the parameters. Throws ShapeError if `heads` does not divide `size`.
  TransformerEncoderLayer(std::int64_t size, std::int64_t heads,
                          const TransformerOptions& options = {}, Loc loc = Loc::current());

  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;
  TransformerOptions options;
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

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2, norm3;
  TransformerOptions options;
  TG_MODULE(self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3)

  /// Returns the output of the layer: x [B, T, size] and memory [B, S, size] -> [B, T, size].
  Tensor operator()(Tensor x, Tensor memory, const MaskOptions& masks = {},
                    const MaskOptions& memory_masks = {}, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
