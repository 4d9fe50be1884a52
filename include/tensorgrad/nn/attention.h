// SPDX-License-Identifier: MIT
// Attention and the blocks of transformers, with the parameters, names and initial values of
// torch.nn with batch_first: x is [B, T, size].
#pragma once

#include <optional>

#include "tensorgrad/nn/activations.h"
#include "tensorgrad/nn/linear.h"
#include "tensorgrad/nn/normalization.h"

namespace tensorgrad::nn {

struct MaskOptions {
  bool causal = false;
  // bool, true where one may attend (PyTorch's layers take the opposite), or f32, added to the
  // scores. It broadcasts to [B, heads, T, S].
  std::optional<Tensor> mask = std::nullopt;
  // bool [B, S] ([S] without a batch), true where a key is padding, to which nobody may attend.
  std::optional<Tensor> key_padding_mask = std::nullopt;
};

// in_proj_weight [size + 2 kv_size, size] and in_proj_bias make q, k and v; out_proj joins the
// heads. kv_heads of keys and values serve heads / kv_heads queries each; kv_size is their width,
// size * kv_heads / heads. With keys or values of another width than `size` there are
// q_proj_weight [size, size], k_proj_weight [kv_size, kdim] and v_proj_weight [kv_size, vdim] in
// place of in_proj_weight.
struct MultiheadAttention {
  struct Options {
    double dropout = 0;  // of the attention weights
    bool bias = true;
    std::int64_t kv_heads = 0;        // 0: as many as heads
    std::int64_t kdim = 0, vdim = 0;  // width of keys and of values; 0: size
    bool add_bias_kv = false;  // bias_k and bias_v [1, 1, kv_size]: a key and a value for everybody
    bool add_zero_attn = false;  // a key and a value of zeros for everybody
  };
  struct Output {
    Tensor output;   // [B, T, size]
    Tensor weights;  // [B, T, S], their mean over the heads; or [B, heads, T, S]
  };
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
  // query [B, T, size], key [B, S, kdim], value [B, S, vdim] -> [B, T, size]; or all without B.
  Tensor operator()(Tensor query, Tensor key, Tensor value, const MaskOptions& masks = {},
                    Loc loc = Loc::current()) const;
  // Of x with itself.
  Tensor operator()(Tensor x, const MaskOptions& masks = {}, Loc loc = Loc::current()) const {
    return (*this)(x, x, x, masks, loc);
  }
  // The result and the weights of attention (PyTorch's need_weights), which are stored for it:
  // after dropout, with those of bias_k and of the zeros at the end. They have a gradient.
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

struct TransformerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  bool norm_first = false;  // normalise before each part, not after it
  bool gelu = false;        // else relu
  double layer_norm_eps = 1e-5;
};

// Attention of x with itself, then a network of two layers, each added to its input.
struct TransformerEncoderLayer {
  TransformerEncoderLayer(std::int64_t size, std::int64_t heads,
                          const TransformerOptions& options = {}, Loc loc = Loc::current());

  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;
  TransformerOptions options;
  TG_MODULE(self_attn, linear1, linear2, norm1, norm2)
  Tensor operator()(Tensor x, const MaskOptions& masks = {}, Loc loc = Loc::current()) const;
};

// The same with attention to an encoder's output [B, S, size] between the two.
struct TransformerDecoderLayer {
  TransformerDecoderLayer(std::int64_t size, std::int64_t heads,
                          const TransformerOptions& options = {}, Loc loc = Loc::current());

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2, norm3;
  TransformerOptions options;
  TG_MODULE(self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3)
  Tensor operator()(Tensor x, Tensor memory, const MaskOptions& masks = {},
                    const MaskOptions& memory_masks = {}, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::nn
