// SPDX-License-Identifier: MIT
#include "tensorgrad/nn/causal_attention.h"

#include <cmath>
#include <limits>
#include <string>

#include "nn/mixer_parts.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

CausalAttention::CausalAttention(std::int64_t width, std::int64_t count, const Options& given,
                                 Loc loc)
    : options(given),
      d_model(width),
      heads(count),
      kv_heads(given.kv_heads == 0 ? count : given.kv_heads),
      in_proj(1, 1, false, loc),
      out_proj(scaled_linear(width, width, given.residuals, loc, given.bias)) {
  if (heads < 1 || kv_heads < 1 || d_model % heads != 0 || heads % kv_heads != 0) {
    throw ShapeError(
        "CausalAttention: d_model must be a multiple of heads and heads of kv_heads, got " +
            std::to_string(d_model) + ", " + std::to_string(heads) + " and " +
            std::to_string(kv_heads),
        loc);
  }
  const std::int64_t each = d_model / heads;
  if (given.rope_dims < 0 || given.rope_dims > each || given.rope_dims % 2 != 0) {
    throw ShapeError(
        "CausalAttention: rope_dims: expected an even number from 0 to d_model / "
        "heads = " +
            std::to_string(each) + ", got " + std::to_string(given.rope_dims),
        loc);
  }
  in_proj = Linear(d_model, d_model / heads * (heads + 2 * kv_heads), given.bias, loc);
}

std::vector<StateSpec> CausalAttention::state_specs(std::int64_t batch) const {
  const Shape cache = {batch, kv_heads, options.max_length, d_model / heads};
  // Places beyond the position are masked, so the caches need not be cleared.
  return {{"k", cache, false}, {"v", cache, false}, {"position", {batch}}};
}

namespace {

// Applies rotary embeddings of positions `at` [B, L] to x [B, H, L, D].
Tensor turned(Tensor x, Tensor at, double base, Loc loc) {
  const std::int64_t batch = x.size(0), length = x.size(2), pairs = x.size(3) / 2;
  const Shape shape = {batch, 1, length, pairs};
  const Tensor angle =
      reshape(at, {batch, 1, length, 1}, loc) *
      exp2(iota(shape, 3, f32, loc) * (-std::log2(base) / static_cast<double>(pairs)));
  const Tensor a = narrow(x, -1, 0, pairs, loc), b = narrow(x, -1, pairs, pairs, loc);
  const Tensor c = cos(angle), s = sin(angle);
  return concat({a * c - b * s, b * c + a * s}, -1, loc);
}

}  // namespace

RecurrentResult CausalAttention::run(Tensor x, const std::vector<Tensor>& state,
                                     std::optional<Tensor> documents, Loc loc) const {
  demand_width("CausalAttention", x, d_model, loc);
  return attend(in_proj(x, loc), state, documents, loc);
}

RecurrentResult CausalAttention::attend(Tensor qkv, const std::vector<Tensor>& state,
                                        std::optional<Tensor> documents, Loc loc) const {
  const std::int64_t each = d_model / heads, batch = qkv.size(0, loc), length = qkv.size(1, loc);
  const auto of_heads = [&](std::int64_t first, std::int64_t count) {
    const Tensor part = narrow(qkv, -1, first * each, count * each, loc);
    return transpose(reshape(part, {batch, length, count, each}, loc), 1, 2, loc);
  };
  Tensor q = of_heads(0, heads), k = of_heads(heads, kv_heads);
  Tensor v = of_heads(heads + kv_heads, kv_heads);
  AttentionOptions attending = {.causal = true, .scale = scale, .enable_gqa = kv_heads != heads};
  std::vector<Tensor> behind;
  if (documents && !state.empty()) {
    throw UserError("CausalAttention: expected documents or a state, got both", loc);
  }
  std::optional<Tensor> at;  // positions [B, L]; not set: those of rope()
  if (documents) {
    at = cast(document_positions(*documents, loc), f32);
  } else if (!state.empty()) {
    at = iota({batch, length}, 1, f32, loc) + unsqueeze(state.at(2), 1, loc);
  }
  if (options.rope) {
    const std::int64_t dims = options.rope_dims > 0 ? options.rope_dims : each;
    const auto rotated = [&](Tensor all_dims) {
      const Tensor part = dims < each ? narrow(all_dims, -1, 0, dims, loc) : all_dims;
      const Tensor made = at ? turned(part, *at, options.rope_base, loc)
                             : rope(part, {.base = options.rope_base}, loc);
      if (dims == each) return made;
      return concat({made, narrow(all_dims, -1, dims, each - dims, loc)}, -1, loc);
    };
    q = rotated(q);
    k = rotated(k);
  }
  if (documents) {
    const Shape square = {batch, 1, length, length};
    const Tensor back = iota(square, 2, f32, loc) - iota(square, 3, f32, loc);
    attending.mask = back <= reshape(*at, {batch, 1, length, 1}, loc);
  }
  if (!state.empty()) {
    const Tensor position = state.at(2);
    const std::int64_t room = options.max_length;
    const Tensor start = cast(reshape(position, {batch, 1, 1, 1}, loc), i32);
    // Attention multiplies masked values by zero, so a NaN left in the cache would reach later
    // sequences. It is kept in the key instead, whose score is replaced where it is masked.
    const Tensor finite = isfinite(v);
    k = where(finite, k, std::numeric_limits<double>::quiet_NaN());
    v = where(finite, v, 0.0);
    k = index_update(state.at(0), 2, start, cast(k, state.at(0).dtype()), loc);
    v = index_update(state.at(1), 2, start, cast(v, state.at(1).dtype()), loc);
    const Tensor row = iota({length, room}, 0, f32, loc),
                 column = iota({length, room}, 1, f32, loc);
    attending.causal = false;
    attending.mask = column - row <= reshape(position, {batch, 1, 1, 1}, loc);
    behind = {k, v, position + static_cast<double>(length)};
  }
  const Tensor y = scaled_dot_product_attention(q, k, v, attending, loc);
  return {out_proj(reshape(transpose(y, 1, 2, loc), {batch, length, d_model}, loc), loc), behind};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
