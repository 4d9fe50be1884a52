// SPDX-License-Identifier: MIT
// Rotary positions and attention, composed of other ops.
#include <cmath>

#include "api/trace.h"
#include "base/numbers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad {

Tensor causal_mask(std::int64_t rows, std::int64_t columns, Loc loc) {
  const Composite composite("causal_mask", loc);
  const Shape shape = {rows, columns};
  return le(iota(shape, 1, i32, loc), iota(shape, 0, i32, loc));
}

namespace {

// t * base^(-2 i / D), [T, D/2]
Tensor rope_angles(const RopeOptions& options, std::int64_t length, std::int64_t pairs, Loc loc) {
  const Shape shape = {length, pairs};
  Tensor position = iota(shape, 0, f32, loc) + options.offset;
  if (options.position) {
    const Shape given = options.position->shape();
    if (!given.empty() && given != Shape{length}) {
      throw ShapeError(
          "rope: positions must be [" + std::to_string(length) + "] or [], got " + to_string(given),
          loc);
    }
    position = given.empty() ? iota(shape, 0, f32, loc) + *options.position
                             : unsqueeze(*options.position, 1, loc);
  }
  const double step = -std::log2(options.base) / static_cast<double>(pairs);
  return position * exp2(iota(shape, 1, f32, loc) * step);
}

}  // namespace

// (a, b) -> (a cos - b sin, b cos + a sin)
Tensor rope(Tensor x, const RopeOptions& options, Loc loc) {
  const Composite composite("rope", loc);
  if (x.rank() < 2 || x.size(-1) % 2 != 0) {
    throw ShapeError("rope: x [..., T, D] with an even D expected, got " + to_string(x.shape()),
                     loc);
  }
  if (!(options.base > 0)) {
    throw UserError("rope: base must be more than 0, got " + number_text(options.base), loc);
  }
  const std::int64_t pairs = x.size(-1) / 2;
  const Tensor angles = rope_angles(options, x.size(-2), pairs, loc);
  const bool halves = options.pairs == RopePairs::kHalves;
  Shape split = x.shape();
  split.back() = halves ? 2 : pairs;
  split.push_back(halves ? pairs : 2);
  const int axis = halves ? -2 : -1;
  const Tensor both = reshape(x, split, loc);
  const Tensor a = squeeze(narrow(both, axis, 0, 1, loc), axis, loc);
  const Tensor b = squeeze(narrow(both, axis, 1, 1, loc), axis, loc);
  const Tensor c = cos(angles), s = sin(angles);
  return reshape(stack({a * c - b * s, b * c + a * s}, axis, loc), x.shape(), loc);
}

namespace {

// The heads of k or v, each as often as there are query heads for it.
Tensor for_each_query(Tensor x, Tensor q, Loc loc) {
  const std::int64_t heads = x.size(-3), queries = q.size(-3);
  if (queries % heads != 0) {
    throw ShapeError("scaled_dot_product_attention: " + std::to_string(queries) +
                         " heads of q are no multiple of " + std::to_string(heads) + " of k and v",
                     loc);
  }
  return heads == queries ? x : repeat_interleave(x, queries / heads, -3, loc);
}

void check_attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& options, Loc loc) {
  const int least = options.enable_gqa ? 3 : 2;
  for (const Tensor& each : {q, k, v}) {
    if (each.rank() >= least) continue;
    throw ShapeError("scaled_dot_product_attention: at least " + std::to_string(least) +
                         " axes expected, got " + to_string(each.shape()),
                     loc);
  }
  if (q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2)) return;
  throw ShapeError(
      "scaled_dot_product_attention: q [.., T, D], k [.., S, D], v [.., S, E] expected, "
      "got q " +
          to_string(q.shape()) + ", k " + to_string(k.shape()) + ", v " + to_string(v.shape()),
      loc);
}

}  // namespace

Tensor scaled_dot_product_attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& options,
                                    Loc loc) {
  const Composite composite("scaled_dot_product_attention", loc);
  check_attention(q, k, v, options, loc);
  if (options.enable_gqa) {
    k = for_each_query(k, q, loc);
    v = for_each_query(v, q, loc);
  }
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
  Tensor scores = matmul(q * scale, transpose(k, -2, -1, loc), loc);
  std::optional<Tensor> allowed;
  if (options.causal) allowed = causal_mask(q.size(-2), k.size(-2), loc);
  if (options.mask && options.mask->dtype() == DType::kF32) {
    scores = scores + *options.mask;
    if (!allowed) allowed = full({1}, 1, boolean, loc);  // rows of -inf alone give 0 here too
  } else if (options.mask) {
    allowed = allowed ? *allowed && *options.mask : *options.mask;
  }
  Tensor weights = allowed ? masked_softmax(scores, *allowed, -1, loc) : softmax(scores, -1, loc);
  if (options.dropout > 0) weights = dropout(weights, options.dropout, loc);
  return matmul(weights, v, loc);
}

}  // namespace tensorgrad
