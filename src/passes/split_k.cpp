// SPDX-License-Identifier: MIT
#include "passes/split_k.h"

#include <algorithm>

#include "base/divide.h"
#include "ops/expr.h"
#include "ops/pointwise.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::int64_t kSide = 128;                                 // of a tile
constexpr std::int64_t kMinDepth = 256;                             // of a part
constexpr std::int64_t kMultiple = 64;                              // the depths of tiles divide it
constexpr std::int64_t kMaxSplitElements = std::int64_t{24} << 20;  // of all parts
constexpr double kWorthIt = 0.9;                                    // of the time without the split

// Returns the estimated time of a product split into parts of `depth` steps. The cores compute the
// tiles in rounds, of which the last takes as long as the others.
double seconds(const GpuModel& gpu, bool halves, std::int64_t m, std::int64_t n, std::int64_t k,
               std::int64_t depth) {
  const ProductSpeed& speed = halves ? gpu.f16_product_speed : gpu.product_speed;
  const std::int64_t parts = ceil_div(k, depth),
                     tiles = ceil_div(m, kSide) * ceil_div(n, kSide) * parts;
  const auto steps = static_cast<double>(depth);
  const auto rounds = [&](std::int64_t at_once) {
    const std::int64_t each = at_once / gpu.cores;
    return static_cast<double>(ceil_div(tiles, at_once) * each);
  };
  // A workgroup by itself keeps a core as busy as two only if it multiplies in f32.
  const bool in_pairs = halves || tiles > gpu.spread_tiles;
  const double pairs =
      (in_pairs ? rounds(2 * gpu.cores) : 1) * speed.seconds_per_step * (steps + speed.start_steps);
  const double single =
      rounds(gpu.cores) * speed.seconds_per_step_single * (steps + speed.start_steps_single);
  const double product = std::min(pairs, single);
  if (parts == 1) return product;
  const auto bytes = static_cast<double>(2 * sizeof(float)) * static_cast<double>(parts * m * n);
  return product + bytes * gpu.seconds_per_byte + gpu.seconds_per_parts_launch;
}

// True if x holds f16 values, so that subgroup matrices may be used.
bool is_half(const Expr& x) {
  ValueId id = x.id;
  const Graph& graph = x.builder->graph;
  while (graph[id].op->kind == OpKind::kView) id = graph[id].inputs[0];
  const Node& node = graph[id];
  return node.op == &ops::round_to_f16 ||
         (node.op == &ops::cast && graph[node.inputs[0]].type.dtype == DType::kF16);
}

// Returns the number of k steps in a part, or k if the product is not split.
std::int64_t part_depth(const GpuModel& gpu, std::int64_t m, std::int64_t n, std::int64_t k,
                        bool halves) {
  const std::int64_t tiles = ceil_div(m, kSide) * ceil_div(n, kSide), most = k / kMinDepth;
  const bool few = tiles < gpu.cores / 2;
  std::int64_t least = halves ? gpu.min_split_products_f16 : gpu.min_split_products;
  if (std::min(m, n) <= gpu.few_rows) least = std::min(least, gpu.min_split_products_few_rows);
  if (m * n < (few ? least : gpu.min_split_products_half_busy) / k) return k;
  const auto depth_of = [&](std::int64_t parts) {
    return ceil_div(ceil_div(k, parts), kMultiple) * kMultiple;
  };
  // Measured: with smaller tiles than these, many parts are fastest.
  if (few && std::min(m, n) < kSide)
    return depth_of(
        std::clamp<std::int64_t>(gpu.wanted_tiles / tiles, 1, std::max<std::int64_t>(1, most)));
  std::int64_t best = k;
  double shortest = kWorthIt * seconds(gpu, halves, m, n, k, k);
  for (std::int64_t parts = 2; parts <= most && parts * m * n <= kMaxSplitElements; ++parts) {
    const double time = seconds(gpu, halves, m, n, k, depth_of(parts));
    if (time >= shortest) continue;
    best = depth_of(parts);
    shortest = time;
  }
  return best;
}

}  // namespace

Graph split_k(const Graph& graph, bool always, const GpuModel& gpu) {
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->kind != OpKind::kContraction || node.type.shape.size() != 2) return kNoValue;
    Builder builder{out, node.location, node.origin};
    const Expr a{&builder, node.inputs[0]}, b{&builder, node.inputs[1]};
    const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
    const std::int64_t each =
        always ? ceil_div(k, 2) : part_depth(gpu, m, n, k, is_half(a) && is_half(b));
    if (each >= k) return kNoValue;
    return op::sum(op::matmul_in_parts(a, b, each), {0}).id;
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
