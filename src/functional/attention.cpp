// SPDX-License-Identifier: MIT
// Rotary position embeddings and attention, composed of other ops.
#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "ops/attention.h"
#include "ops/registry.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

Tensor causal_mask(std::int64_t rows, std::int64_t columns, Loc loc) {
  const Composite composite("causal_mask", loc);
  const Shape shape = {rows, columns};
  return le(iota(shape, 1, i32, loc), iota(shape, 0, i32, loc));
}

namespace {

// Returns t * base^(-2 i / D), [T, D/2].
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

// Maps each pair (a, b) to (a cos - b sin, b cos + a sin).
Tensor rope(Tensor x, const RopeOptions& options, Loc loc) {
  const Composite composite("rope", loc);
  if (x.rank() < 2 || x.size(-1) % 2 != 0) {
    throw ShapeError("rope: expected x [..., T, D] with even D, got " + to_string(x.shape()), loc);
  }
  if (!(options.base > 0)) {
    throw UserError("rope: base must be more than 0, got " + number_text(options.base), loc);
  }
  const Upcast downcast(x);
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
  return downcast(reshape(stack({a * c - b * s, b * c + a * s}, axis, loc), x.shape(), loc));
}

namespace {

constexpr const char* kName = "scaled_dot_product_attention";

void check_attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& options, Loc loc) {
  const int least = options.enable_gqa ? 3 : 2;
  for (const Tensor& each : {q, k, v}) {
    if (register_dtype(each.dtype()) != DType::kF32) {
      throw DtypeError(
          std::string(kName) + ": expected f32, got " + std::string(to_string(each.dtype())), loc);
    }
    if (each.rank() >= least) continue;
    throw ShapeError(std::string(kName) + ": expected at least " + std::to_string(least) +
                         " axes, got " + to_string(each.shape()),
                     loc);
  }
  if (q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2)) return;
  throw ShapeError(std::string(kName) +
                       ": expected q [.., T, D], k [.., S, D], v [.., S, E], "
                       "got q " +
                       to_string(q.shape()) + ", k " + to_string(k.shape()) + ", v " +
                       to_string(v.shape()),
                   loc);
}

// Returns all axes except the last two.
Shape leading(const Tensor& x) {
  Shape shape = x.shape();
  shape.resize(shape.size() - 2);
  return shape;
}

Tensor spread(Tensor x, Shape lead, Loc loc) {
  lead.push_back(x.size(-2));
  lead.push_back(x.size(-1));
  return x.shape() == lead ? x : broadcast_to(x, lead, loc);
}

// Splits the head axis of q into [heads of k, query heads per head of k], and that of k and v into
// [heads, 1]. The keys of a group are then a broadcast, which is not materialized.
Tensor by_group(Tensor x, std::int64_t heads, std::int64_t each, Loc loc) {
  Shape shape = x.shape();
  const auto at = shape.end() - 3;
  *at = heads;
  shape.insert(at + 1, each);
  return reshape(x, shape, loc);
}

// Attention with materialized weights, for heads that are too wide for the tiled kernel.
Tensor stored_attention(Tensor q, Tensor k, Tensor v, std::optional<Tensor> mask,
                        std::optional<Tensor> keep, bool causal, double scale, Loc loc) {
  Tensor scores = matmul(q * scale, transpose(k, -2, -1, loc), loc);
  Tensor allowed = full({1}, 1, boolean, loc);  // also makes rows of only -inf zero
  if (causal) allowed = causal_mask(q.size(-2), k.size(-2), loc);
  if (mask && mask->dtype() == DType::kF32) {
    scores = scores + *mask;
  } else if (mask) {
    allowed = allowed && *mask;
  }
  Tensor weights = masked_softmax(scores, allowed, -1, loc);
  if (keep) weights = weights * *keep;
  return matmul(weights, v, loc);
}

Tensor fused_attention(Tensor q, Tensor k, Tensor v, std::optional<Tensor> mask,
                       std::optional<Tensor> keep, bool causal, bool half, double scale, Loc loc) {
  OpContext ctx(kName, loc);
  std::vector<Expr> operands = {ctx.in(q), ctx.in(k), ctx.in(v)};
  if (mask) operands.push_back(ctx.in(*mask));
  if (keep) operands.push_back(ctx.in(*keep));
  Attrs attrs = {{"causal", std::int64_t{causal}},
                 {"keep", std::int64_t{keep.has_value()}},
                 {"mask", std::int64_t{mask.has_value()}},
                 {"scale", scale}};
  if (half) attrs.set("half", std::int64_t{1});
  return ctx.out(op::apply(ctx.builder, ops::attention, operands, attrs));
}

}  // namespace

Tensor scaled_dot_product_attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& options,
                                    Loc loc) {
  const Composite composite(kName, loc);
  check_attention(q, k, v, options, loc);
  const bool half =
      q.dtype() == DType::kF16 && k.dtype() == DType::kF16 && v.dtype() == DType::kF16;
  const MixedProduct downcast({&q, &k, &v}, half);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
  std::optional<Tensor> mask = options.mask;
  if (mask) upcast({&*mask});
  if (mask && mask->dtype() != DType::kF32 && mask->dtype() != DType::kBool) {
    throw DtypeError(std::string(kName) + ": expected a bool or f32 mask, got " +
                         std::string(to_string(mask->dtype())),
                     loc);
  }
  const std::int64_t rows = q.size(-2), columns = k.size(-2);
  Shape out = q.shape();
  if (options.enable_gqa) {
    const std::int64_t heads = k.size(-3), queries = q.size(-3);
    if (queries % heads != 0 || v.size(-3) != heads) {
      throw ShapeError(std::string(kName) + ": " + std::to_string(queries) +
                           " heads of q are not a multiple of the " + std::to_string(heads) +
                           " heads of k and v",
                       loc);
    }
    q = by_group(q, heads, queries / heads, loc);
    k = by_group(k, heads, 1, loc);
    v = by_group(v, heads, 1, loc);
    if (mask && mask->rank() >= 3) {
      const bool one = mask->size(-3) == 1;
      mask = by_group(*mask, one ? 1 : heads, one ? 1 : queries / heads, loc);
    }
  }
  Shape lead = broadcast_shapes(leading(q), broadcast_shapes(leading(k), leading(v), kName, loc),
                                kName, loc);
  if (mask && mask->rank() > 2) lead = broadcast_shapes(lead, leading(*mask), kName, loc);
  q = spread(q, lead, loc);
  k = spread(k, lead, loc);
  v = spread(v, lead, loc);
  Shape weights = lead;
  weights.insert(weights.end(), {rows, columns});
  if (mask) mask = broadcast_to(*mask, weights, loc);
  std::optional<Tensor> keep;
  if (options.dropout > 0 && is_training(loc)) {
    keep = dropout(ones(weights, f32, loc), options.dropout, loc);
  }
  const Tensor o =
      std::max(q.size(-1), v.size(-1)) > kWidestHead
          ? stored_attention(q, k, v, mask, keep, options.causal, scale, loc)
          : fused_attention(q, k, v, mask, keep, options.causal, downcast.half(), scale, loc);
  if (!options.enable_gqa) return downcast(o);
  Shape joined = o.shape();
  const auto at = joined.end() - 4;
  *(at + 1) *= *at;
  joined.erase(at);
  return downcast(reshape(o, joined, loc));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
