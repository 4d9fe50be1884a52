// SPDX-License-Identifier: MIT
// Attention and transformer blocks. Shapes: B batch, T and S positions, H heads.
#include "tensorgrad/nn/attention.h"

#include <limits>

namespace tensorgrad::nn {

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t count,
                                       const Options& options, Loc loc)
    : size(width),
      heads(count),
      kv_heads(options.kv_heads == 0 ? count : options.kv_heads),
      dropout(options.dropout),
      in_proj_weight({1}, init::zeros(), loc),
      out_proj(width, width, options.bias, loc) {
  if (heads < 1 || kv_heads < 1 || size % heads != 0 || heads % kv_heads != 0) {
    throw ShapeError(
        "MultiheadAttention: the size must be a multiple of heads, and heads of "
        "kv_heads, got " +
            std::to_string(size) + ", " + std::to_string(heads) + " and " +
            std::to_string(kv_heads),
        loc);
  }
  const Shape shape = {size + 2 * (size / heads * kv_heads), size};
  in_proj_weight = Parameter(shape, init::xavier_uniform(shape, 1, loc), loc);
  if (!options.bias) return;
  in_proj_bias.emplace(Shape{shape[0]}, init::zeros(), loc);
  out_proj.bias.emplace(Shape{size}, init::zeros(), loc);
}

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t count, Loc loc)
    : MultiheadAttention(width, count, Options{}, loc) {}

// [B, T, size] through rows [first, first + width) of the projection, as `parts` heads [B, H, T,
// D].
Tensor MultiheadAttention::projected(Tensor x, std::int64_t first, std::int64_t width,
                                     std::int64_t parts, Loc loc) const {
  std::optional<Tensor> bias;
  if (in_proj_bias) bias = narrow(in_proj_bias->tensor(loc), 0, first, width, loc);
  const Tensor y = linear(x, narrow(in_proj_weight.tensor(loc), 0, first, width, loc), bias, loc);
  return transpose(reshape(y, {x.size(0), x.size(1), parts, size / heads}, loc), 1, 2, loc);
}

namespace {

// Both masks as one, true where one may attend, or f32 to be added.
std::optional<Tensor> joined(const MaskOptions& masks, Tensor key, Loc loc) {
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
  return where(real, *masks.mask, -std::numeric_limits<double>::infinity());
}

}  // namespace

Tensor MultiheadAttention::operator()(Tensor query, Tensor key, Tensor value,
                                      const MaskOptions& masks, Loc loc) const {
  for (const Tensor& each : {query, key, value}) {
    if (each.rank(loc) == 3 && each.size(-1, loc) == size) continue;
    throw ShapeError("MultiheadAttention: [B, T, " + std::to_string(size) + "] expected, got " +
                         to_string(each.shape(loc)),
                     loc);
  }
  const std::int64_t kv_size = size / heads * kv_heads;
  const AttentionOptions options = {.mask = joined(masks, key, loc),
                                    .causal = masks.causal,
                                    .dropout = dropout,
                                    .enable_gqa = kv_heads != heads};
  const Tensor y = scaled_dot_product_attention(
      projected(query, 0, size, heads, loc), projected(key, size, kv_size, kv_heads, loc),
      projected(value, size + kv_size, kv_size, kv_heads, loc), options, loc);
  return out_proj(reshape(transpose(y, 1, 2, loc), query.shape(loc), loc), loc);
}

namespace {

MultiheadAttention attention_of(std::int64_t size, std::int64_t heads,
                                const TransformerOptions& options, Loc loc) {
  return {size, heads, {.dropout = options.dropout}, loc};
}

// x + dropout(part(x)) with the norm before the part or after the sum.
template <class Part>
Tensor with_norm(Tensor x, const LayerNorm& norm, const TransformerOptions& options, Part part,
                 Loc loc) {
  if (options.norm_first) return x + dropout(part(norm(x, loc)), options.dropout, loc);
  return norm(x + dropout(part(x), options.dropout, loc), loc);
}

Tensor two_layers(Tensor x, const Linear& first, const Linear& second,
                  const TransformerOptions& options, Loc loc) {
  const Tensor wide = first(x, loc);
  const Tensor active = options.gelu ? gelu(wide, Gelu::kExact, loc) : relu(Operand(wide, loc));
  return second(dropout(active, options.dropout, loc), loc);
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t size, std::int64_t heads,
                                                 const TransformerOptions& given, Loc loc)
    : self_attn(attention_of(size, heads, given, loc)),
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
    : self_attn(attention_of(size, heads, given, loc)),
      multihead_attn(attention_of(size, heads, given, loc)),
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

}  // namespace tensorgrad::nn
