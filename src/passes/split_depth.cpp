// SPDX-License-Identifier: MIT
#include "passes/split_depth.h"

#include <algorithm>

#include "ops/expr.h"
#include "passes/divisor.h"

namespace tensorgrad {
namespace {

constexpr std::int64_t kSide = 128;  // of a tile
// So many tiles leave less than half of a large GPU idle, so many all but nothing; and as many as
// are wanted, so that those of the last round count little.
constexpr std::int64_t kHalfBusy = 64, kBusy = 132;
constexpr std::int64_t kWanted = 768;
// Products below this many multiplications take less time than what the cut costs: a launch, and
// the parts' way through memory.
constexpr std::int64_t kLeastProducts = std::int64_t{1} << 29;
constexpr std::int64_t kLeastOfHalfBusy = std::int64_t{1} << 31;
constexpr std::int64_t kLeastDepth = 256;  // of a part

std::int64_t tiles_of(std::int64_t size) { return (size + kSide - 1) / kSide; }

// 1 where the product stays whole.
std::int64_t parts_of_depth(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t tiles = tiles_of(m) * tiles_of(n);
  const std::int64_t least = tiles < kHalfBusy ? kLeastProducts : kLeastOfHalfBusy;
  if (tiles >= kBusy || k < 2 * kLeastDepth || m * n < least / k) return 1;
  const std::int64_t wanted = std::min(kWanted / tiles, k / kLeastDepth);
  return std::max<std::int64_t>(1, divisor_near(k, wanted, 2, k / kLeastDepth));
}

}  // namespace

Graph split_depth(const Graph& graph) {
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->kind != OpKind::kContraction || node.type.shape.size() != 2) return kNoValue;
    Builder builder{out, node.site, node.origin};
    const Ex a{&builder, node.inputs[0]}, b{&builder, node.inputs[1]};
    const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
    const std::int64_t parts = parts_of_depth(m, n, k), each = k / parts;
    if (parts == 1) return kNoValue;
    const Ex a_parts = op::permute(op::reshape(a, {m, parts, each}), {1, 0, 2});
    return op::sum(op::matmul(a_parts, op::reshape(b, {parts, each, n})), {0}).id;
  });
}

}  // namespace tensorgrad
