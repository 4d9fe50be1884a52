// SPDX-License-Identifier: MIT
#include "passes/split_depth.h"

#include <algorithm>

#include "ops/expr.h"
#include "ops/pointwise.h"
#include "passes/divisor.h"

namespace tensorgrad {
namespace {

constexpr std::int64_t kSide = 128;  // of a tile
// A large GPU computes so many tiles at once; a few less already come to lie two on one core while
// others have none.
constexpr std::int64_t kAtOnce = 132, kSpread = 112;
// What a tile takes for each of its depth, what parts take to be written and read, and their
// launch.
constexpr double kSecondsOfDepth = 0.096e-6, kSecondsOfByte = 1 / 3.5e12, kSecondsOfLaunch = 5e-6;
// Tiles that few become. Products below so many multiplications take less time than what the cut
// costs.
constexpr std::int64_t kWanted = 768;
constexpr std::int64_t kLeastProducts = std::int64_t{1} << 29,
                       kLeastProductsOfHalves = kLeastProducts / 2;
constexpr std::int64_t kLeastOfHalfBusy = std::int64_t{1} << 31;
constexpr std::int64_t kLeastDepth = 256, kLeastOfHalves = 1024;  // of a part
constexpr std::int64_t kMostElements = std::int64_t{24} << 20;    // of all parts
constexpr double kWorthIt = 0.95;                                 // of the time of the whole

std::int64_t over(std::int64_t size, std::int64_t each) { return (size + each - 1) / each; }

double seconds(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t parts) {
  const std::int64_t tiles = over(m, kSide) * over(n, kSide) * parts;
  const std::int64_t least_rounds = tiles > kSpread ? 2 : 1;
  const auto rounds = static_cast<double>(std::max(least_rounds, over(tiles, kAtOnce)));
  const double product =
      rounds * kSecondsOfDepth * static_cast<double>(k) / static_cast<double>(parts);
  if (parts == 1) return product;
  const auto bytes = static_cast<double>(2 * sizeof(float)) * static_cast<double>(parts * m * n);
  return product + bytes * kSecondsOfByte + kSecondsOfLaunch;
}

// Matrix units may take it.
bool is_half(const Ex& x) {
  ValueId id = x.id;
  const Graph& graph = x.builder->graph;
  while (graph[id].op->kind == OpKind::kView) id = graph[id].inputs[0];
  const Node& node = graph[id];
  return node.op == &ops::round_to_f16 ||
         (node.op == &ops::cast && graph[node.inputs[0]].type.dtype == DType::kF16);
}

// 1 where the product stays whole.
std::int64_t parts_of_depth(std::int64_t m, std::int64_t n, std::int64_t k, bool halves) {
  const std::int64_t tiles = over(m, kSide) * over(n, kSide),
                     most = k / (halves ? kLeastOfHalves : kLeastDepth);
  const bool few = tiles < kAtOnce / 2;
  const std::int64_t least = halves ? kLeastProductsOfHalves : kLeastProducts;
  if (m * n < (few ? least : kLeastOfHalfBusy) / k) return 1;
  // Where few tiles are of smaller sides than these, many parts have done best.
  if (few)
    return std::max<std::int64_t>(1, divisor_near(k, std::min(kWanted / tiles, most), 2, most));
  std::int64_t best = 1;
  double shortest = kWorthIt * seconds(m, n, k, 1);
  for (std::int64_t parts = 2; parts <= most && parts * m * n <= kMostElements; ++parts) {
    if (k % parts != 0 || seconds(m, n, k, parts) >= shortest) continue;
    best = parts;
    shortest = seconds(m, n, k, parts);
  }
  return best;
}

}  // namespace

Graph split_depth(const Graph& graph, bool always) {
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->kind != OpKind::kContraction || node.type.shape.size() != 2) return kNoValue;
    Builder builder{out, node.site, node.origin};
    const Ex a{&builder, node.inputs[0]}, b{&builder, node.inputs[1]};
    const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
    const std::int64_t parts =
        always ? least_divisor(k) : parts_of_depth(m, n, k, is_half(a) && is_half(b));
    const std::int64_t each = k / parts;
    if (parts == 1) return kNoValue;
    const Ex a_parts = op::permute(op::reshape(a, {m, parts, each}), {1, 0, 2});
    return op::sum(op::matmul(a_parts, op::reshape(b, {parts, each, n})), {0}).id;
  });
}

}  // namespace tensorgrad
