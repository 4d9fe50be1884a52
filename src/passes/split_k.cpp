// SPDX-License-Identifier: MIT
#include "passes/split_k.h"

#include <algorithm>

#include "ops/expr.h"
#include "ops/pointwise.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::int64_t kSide = 128;  // of a tile
// Cost model of a large GPU. Its kCores cores compute the tiles in rounds, of which the last takes
// as long as the others. A core computes either two tiles at a time, or one tile with twice the
// threads, which is slower per tile. Up to kSpread tiles run on a core each in either case. A step
// of k takes kSecondsOfStep per tile of a core; prologue and epilogue together take as long as
// kStart steps.
constexpr std::int64_t kCores = 132, kSpread = 112;
constexpr double kSecondsOfStep = 0.085e-6, kStart = 20, kSecondsOfStepAlone = 0.096e-6,
                 kStartAlone = 8;
// Time per byte of memory traffic for the partial products, and of the launch that sums them.
constexpr double kSecondsOfByte = 1 / 3.5e12, kSecondsOfLaunch = 5e-6;
// Number of tiles to create from few. Products with fewer multiplications than kMinSplitProducts
// take less time than the split costs.
constexpr std::int64_t kWanted = 768;
constexpr std::int64_t kMinSplitProducts = std::int64_t{1} << 29,
                       kMinSplitProductsF16 = kMinSplitProducts / 2;
constexpr std::int64_t kMinOfHalfBusy = std::int64_t{1} << 31;
constexpr std::int64_t kMinDepth = 256, kMinOfHalves = 1024;        // of a part
constexpr std::int64_t kMultiple = 64;                              // the depths of tiles divide it
constexpr std::int64_t kMaxSplitElements = std::int64_t{24} << 20;  // of all parts
constexpr double kWorthIt = 0.9;                                    // of the time without the split

std::int64_t over(std::int64_t size, std::int64_t each) { return (size + each - 1) / each; }

// Returns the estimated time of a product split into parts of `depth` steps.
double seconds(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t depth) {
  const std::int64_t parts = over(k, depth), tiles = over(m, kSide) * over(n, kSide) * parts;
  const auto steps = static_cast<double>(depth);
  const auto rounds = [&](std::int64_t at_once) {
    const std::int64_t each = at_once / kCores;
    return static_cast<double>(over(tiles, at_once) * each);
  };
  const double pairs =
      (tiles > kSpread ? rounds(2 * kCores) : 1) * kSecondsOfStep * (steps + kStart);
  const double alone = rounds(kCores) * kSecondsOfStepAlone * (steps + kStartAlone);
  const double product = std::min(pairs, alone);
  if (parts == 1) return product;
  const auto bytes = static_cast<double>(2 * sizeof(float)) * static_cast<double>(parts * m * n);
  return product + bytes * kSecondsOfByte + kSecondsOfLaunch;
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
std::int64_t part_depth(std::int64_t m, std::int64_t n, std::int64_t k, bool halves) {
  const std::int64_t tiles = over(m, kSide) * over(n, kSide),
                     most = k / (halves ? kMinOfHalves : kMinDepth);
  const bool few = tiles < kCores / 2;
  const std::int64_t least = halves ? kMinSplitProductsF16 : kMinSplitProducts;
  if (m * n < (few ? least : kMinOfHalfBusy) / k) return k;
  const auto depth_of = [&](std::int64_t parts) {
    return over(over(k, parts), kMultiple) * kMultiple;
  };
  // Measured: with smaller tiles than these, or with subgroup matrices, many parts are fastest.
  if (few && (halves || std::min(m, n) < kSide))
    return depth_of(std::clamp<std::int64_t>(kWanted / tiles, 1, std::max<std::int64_t>(1, most)));
  std::int64_t best = k;
  double shortest = kWorthIt * seconds(m, n, k, k);
  for (std::int64_t parts = 2; parts <= most && parts * m * n <= kMaxSplitElements; ++parts) {
    const double time = seconds(m, n, k, depth_of(parts));
    if (time >= shortest) continue;
    best = depth_of(parts);
    shortest = time;
  }
  return best;
}

}  // namespace

Graph split_k(const Graph& graph, bool always) {
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->kind != OpKind::kContraction || node.type.shape.size() != 2) return kNoValue;
    Builder builder{out, node.location, node.origin};
    const Expr a{&builder, node.inputs[0]}, b{&builder, node.inputs[1]};
    const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
    const std::int64_t each = always ? over(k, 2) : part_depth(m, n, k, is_half(a) && is_half(b));
    if (each >= k) return kNoValue;
    return op::sum(op::matmul_in_parts(a, b, each), {0}).id;
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
