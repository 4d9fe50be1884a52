// SPDX-License-Identifier: MIT
// Attention and transformer blocks. Shapes: B batch, T and S positions, H heads.
#include "tensorgrad/nn/attention.h"

#include <cmath>
#include <limits>
#include <utility>
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t count,
                                       const Options& options, Loc loc)
    : size(width),
      heads(count),
      kv_heads(options.kv_heads == 0 ? count : options.kv_heads),
      kdim(options.kdim == 0 ? width : options.kdim),
      vdim(options.vdim == 0 ? width : options.vdim),
      dropout(options.dropout),
      add_zero_attn(options.add_zero_attn),
      out_proj(width, width, options.bias, loc) {
  if (heads < 1 || kv_heads < 1 || size % heads != 0 || heads % kv_heads != 0) {
    throw ShapeError(
        "MultiheadAttention: size must be a multiple of heads and heads of kv_heads, got " +
            std::to_string(size) + ", " + std::to_string(heads) + " and " +
            std::to_string(kv_heads),
        loc);
  }
  const std::int64_t kv_size = size / heads * kv_heads;
  const auto weight = [&](std::optional<Parameter>& to, const Shape& shape) {
    to.emplace(shape, init::xavier_uniform(shape, 1, loc), loc);
  };
  if (kdim == size && vdim == size) {
    weight(in_proj_weight, {size + 2 * kv_size, size});
  } else {
    weight(q_proj_weight, {size, size});
    weight(k_proj_weight, {kv_size, kdim});
    weight(v_proj_weight, {kv_size, vdim});
  }
  if (options.add_bias_kv) {
    const Shape shape = {1, 1, kv_size};
    bias_k.emplace(shape, init::xavier_normal(shape, 1, loc), loc);
    bias_v.emplace(shape, init::xavier_normal(shape, 1, loc), loc);
  }
  if (!options.bias) return;
  in_proj_bias.emplace(Shape{size + 2 * kv_size}, init::zeros(), loc);
  out_proj.bias.emplace(Shape{size}, init::zeros(), loc);
}

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t count, Loc loc)
    : MultiheadAttention(width, count, Options{}, loc) {}

// Projects x [B, T, width] to `parts` heads, [B, parts, T, D]. The weight is `own` or, if that is
// not set, the rows of in_proj_weight from `first`.
Tensor MultiheadAttention::projected(Tensor x, const std::optional<Parameter>& own,
                                     std::int64_t first, std::int64_t parts, Loc loc) const {
  const std::int64_t width = size / heads * parts;
  std::optional<Tensor> bias;
  if (in_proj_bias) bias = narrow(in_proj_bias->tensor(loc), 0, first, width, loc);
  const Tensor weight =
      own ? own->tensor(loc) : narrow(in_proj_weight->tensor(loc), 0, first, width, loc);
  const Tensor y = linear(x, weight, bias, loc);
  return transpose(reshape(y, {x.size(0), x.size(1), parts, size / heads}, loc), 1, 2, loc);
}

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Combines `mask` and `key_padding_mask`. A boolean result is true if a query may attend to a key;
// an f32 result is added to the scores.
std::optional<Tensor> both_masks(const MaskOptions& masks, Tensor key, Loc loc) {
  if (!masks.key_padding_mask) return masks.mask;
  const Shape expected = {key.size(0), key.size(1)};
  if (masks.key_padding_mask->shape() != expected) {
    throw ShapeError("MultiheadAttention: key_padding_mask must be " + to_string(expected) +
                         ", got " + to_string(masks.key_padding_mask->shape()),
                     loc);
  }
  const Tensor real = reshape(!*masks.key_padding_mask, {expected[0], 1, 1, expected[1]}, loc);
  if (!masks.mask) return real;
  if (masks.mask->dtype() == boolean) return *masks.mask && real;
  return where(real, *masks.mask, kMinusInfinity);
}

// Extends the masks by a last key, to which every query may attend. `causal` becomes a mask.
void widen_masks(MaskOptions& masks, Tensor q, Tensor k, Loc loc) {
  const std::int64_t rows = q.size(-2), columns = k.size(-2);
  if (masks.causal) {
    const Tensor causal = causal_mask(rows, columns, loc);
    if (!masks.mask) {
      masks.mask = causal;
    } else if (masks.mask->dtype() == boolean) {
      masks.mask = *masks.mask && causal;
    } else {
      masks.mask = where(causal, *masks.mask, kMinusInfinity);
    }
    masks.causal = false;
  }
  if (!masks.mask) return;
  Shape wide = masks.mask->shape();
  if (wide.empty()) wide = {1};
  wide.back() = columns;
  const bool truth = masks.mask->dtype() == boolean;
  masks.mask = pad(broadcast_to(*masks.mask, wide, loc), {0, 1}, truth ? 1 : 0, loc);
}

// Appends `row` [1, 1, H D], or zeros if it is not set, to each sequence of x [B, H, S, D].
Tensor with_row(Tensor x, const std::optional<Parameter>& row, Loc loc) {
  if (!row) return pad(x, {0, 0, 0, 1}, 0, loc);
  const Shape one = {1, x.size(1), 1, x.size(3)};
  const Shape all = {x.size(0), x.size(1), 1, x.size(3)};
  return concat({x, broadcast_to(reshape(row->tensor(loc), one, loc), all, loc)}, 2, loc);
}

}  // namespace

void MultiheadAttention::check(Tensor query, Tensor key, Tensor value, Loc loc) const {
  const int rank = query.rank(loc) == 2 ? 2 : 3;
  const std::pair<Tensor, std::int64_t> given[] = {{query, size}, {key, kdim}, {value, vdim}};
  const char* const names[] = {"query", "key", "value"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [x, width] = given[i];
    if (x.rank(loc) == rank && x.size(-1, loc) == width) continue;
    throw ShapeError("MultiheadAttention: " + std::string(names[i]) + ": expected " +
                         (rank == 2 ? "[T, " : "[B, T, ") + std::to_string(width) + "], got " +
                         to_string(x.shape(loc)),
                     loc);
  }
}

MultiheadAttention::Heads MultiheadAttention::project(Tensor query, Tensor key, Tensor value,
                                                      const MaskOptions& given, Loc loc) const {
  MaskOptions masks = given;
  if (query.rank() == 2) {
    for (Tensor* each : {&query, &key, &value}) *each = unsqueeze(*each, 0, loc);
    if (masks.key_padding_mask) masks.key_padding_mask = unsqueeze(*masks.key_padding_mask, 0, loc);
  }
  masks.mask = both_masks(masks, key, loc);
  const std::int64_t kv_size = size / heads * kv_heads;
  Heads made{projected(query, q_proj_weight, 0, heads, loc),
             projected(key, k_proj_weight, size, kv_heads, loc),
             projected(value, v_proj_weight, size + kv_size, kv_heads, loc), masks};
  const auto add = [&](const std::optional<Parameter>& k, const std::optional<Parameter>& v) {
    widen_masks(made.masks, made.q, made.k, loc);
    made.k = with_row(made.k, k, loc);
    made.v = with_row(made.v, v, loc);
  };
  if (bias_k) add(bias_k, bias_v);
  if (add_zero_attn) add(std::nullopt, std::nullopt);
  return made;
}

// Concatenates the heads and applies out_proj: [B, H, T, D] -> [B, T, size].
Tensor MultiheadAttention::joined(Tensor y, Loc loc) const {
  return out_proj(reshape(transpose(y, 1, 2, loc), {y.size(0), y.size(2), size}, loc), loc);
}

Tensor MultiheadAttention::operator()(Tensor query, Tensor key, Tensor value,
                                      const MaskOptions& masks, Loc loc) const {
  check(query, key, value, loc);
  const Heads made = project(query, key, value, masks, loc);
  const AttentionOptions options = {.mask = made.masks.mask,
                                    .causal = made.masks.causal,
                                    .dropout = dropout,
                                    .enable_gqa = kv_heads != heads};
  const Tensor y = joined(scaled_dot_product_attention(made.q, made.k, made.v, options, loc), loc);
  return query.rank() == 2 ? squeeze(y, 0, loc) : y;
}

MultiheadAttention::Output MultiheadAttention::with_weights(Tensor query, Tensor key, Tensor value,
                                                            const MaskOptions& masks, bool average,
                                                            Loc loc) const {
  check(query, key, value, loc);
  Heads made = project(query, key, value, masks, loc);
  const std::int64_t each = heads / kv_heads;
  if (each > 1) {
    made.k = repeat_interleave(made.k, each, 1, loc);
    made.v = repeat_interleave(made.v, each, 1, loc);
  }
  const std::int64_t width = size / heads;
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  Tensor scores = matmul(made.q * scale, transpose(made.k, -2, -1, loc), loc);
  Tensor allowed = made.masks.causal ? causal_mask(scores.size(-2), scores.size(-1), loc)
                                     : full({1}, 1, boolean, loc);
  if (made.masks.mask && made.masks.mask->dtype() == boolean) {
    allowed = allowed && *made.masks.mask;
  } else if (made.masks.mask) {
    scores = scores + *made.masks.mask;
  }
  Tensor weights = masked_softmax(scores, allowed, -1, loc);
  weights = tensorgrad::dropout(weights, dropout, loc);
  Tensor y = joined(matmul(weights, made.v, loc), loc);
  if (average) weights = mean(weights, 1, false, loc);
  if (query.rank() > 2) return {y, weights};
  return {squeeze(y, 0, loc), squeeze(weights, 0, loc)};
}

namespace {

MultiheadAttention make_attention_layer(std::int64_t size, std::int64_t heads,
                                        const TransformerOptions& options, Loc loc) {
  return {size, heads, {.dropout = options.dropout}, loc};
}

// Returns x + dropout(part(norm(x))) if `norm_first` is set, else norm(x + dropout(part(x))).
template <class Part>
Tensor with_norm(Tensor x, const LayerNorm& norm, const TransformerOptions& options, Part part,
                 Loc loc) {
  if (options.norm_first) return x + dropout(part(norm(x, loc)), options.dropout, loc);
  return norm(x + dropout(part(x), options.dropout, loc), loc);
}

Tensor two_layers(Tensor x, const Linear& first, const Linear& second,
                  const TransformerOptions& options, Loc loc) {
  const Tensor wide = first(x, loc);
  const Tensor active =
      options.gelu ? gelu(wide, GeluApproximation::kNone, loc) : relu(Operand(wide, loc));
  return second(dropout(active, options.dropout, loc), loc);
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t size, std::int64_t heads,
                                                 const TransformerOptions& given, Loc loc)
    : self_attn(make_attention_layer(size, heads, given, loc)),
      linear1(size, given.dim_feedforward, true, loc),
      linear2(given.dim_feedforward, size, true, loc),
      norm1(size, given.layer_norm_eps, true, loc),
      norm2(size, given.layer_norm_eps, true, loc),
      options(given) {}

Tensor TransformerEncoderLayer::operator()(Tensor x, const MaskOptions& masks, Loc loc) const {
  const auto attend = [&](Tensor y) { return self_attn(y, masks, loc); };
  const auto forward = [&](Tensor y) { return two_layers(y, linear1, linear2, options, loc); };
  x = with_norm(x, norm1, options, attend, loc);
  return with_norm(x, norm2, options, forward, loc);
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t size, std::int64_t heads,
                                                 const TransformerOptions& given, Loc loc)
    : self_attn(make_attention_layer(size, heads, given, loc)),
      multihead_attn(make_attention_layer(size, heads, given, loc)),
      linear1(size, given.dim_feedforward, true, loc),
      linear2(given.dim_feedforward, size, true, loc),
      norm1(size, given.layer_norm_eps, true, loc),
      norm2(size, given.layer_norm_eps, true, loc),
      norm3(size, given.layer_norm_eps, true, loc),
      options(given) {}

Tensor TransformerDecoderLayer::operator()(Tensor x, Tensor memory, const MaskOptions& masks,
                                           const MaskOptions& memory_masks, Loc loc) const {
  const auto attend = [&](Tensor y) { return self_attn(y, masks, loc); };
  const auto look = [&](Tensor y) { return multihead_attn(y, memory, memory, memory_masks, loc); };
  const auto forward = [&](Tensor y) { return two_layers(y, linear1, linear2, options, loc); };
  x = with_norm(x, norm1, options, attend, loc);
  x = with_norm(x, norm2, options, look, loc);
  return with_norm(x, norm3, options, forward, loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
