// SPDX-License-Identifier: MIT
#include "passes/fuse/fuse_bias_gradient.h"

#include <algorithm>
#include <map>
#include <vector>

#include "ops/registry.h"
#include "passes/fuse/partition.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

bool takes_column_sum(const Graph& graph, const FuseOptions& options, const Partition& parts, int g,
                      ValueId operand, std::int64_t cols, std::int64_t count, ValueId sum) {
  const Group& to = parts.group(g);
  if (to.kind != GroupKind::kContraction || to.members.empty()) return false;
  // The contraction is not always the first member: maps of its epilogue may precede it.
  const ValueId root = *std::find_if(to.members.begin(), to.members.end(), [&](ValueId id) {
    return graph[id].op->kind == OpKind::kContraction;
  });
  const Node& product = graph[root];
  if (product.type.shape.size() != 2) return false;
  // The sum over k of b[k, n], or of a[m, k] if a is the transposed operand.
  const Source a = through_views(graph, product.inputs[0]),
               b = through_views(graph, product.inputs[1]);
  const std::int64_t k = graph[product.inputs[1]].type.shape[0];
  if (k != count) return false;  // the product covers only the leading part of the sum
  const View transposed{{cols, k}, {1, cols}, 0, {}, {}};
  const bool of_b = b.value == operand && b.map.is_identity() && product.type.shape[1] == cols;
  const bool of_a = a.value == operand && product.type.shape[0] == cols &&
                    a.map.views.size() == 1 &&
                    a.map.views[0].simplified() == transposed.simplified();
  if (!of_a && !of_b) return false;
  if (parts.depends(g, parts.group_of(sum))) return false;
  for (const ValueId member : to.members) {
    if (graph[member].op == &ops::reduce_sum) return false;  // it already has a sum
  }
  return parts.bindings_with(g, sum) <= options.max_bindings;
}

// Returns, for each value, the contraction groups that have it as an operand.
std::map<ValueId, std::vector<int>> contractions_by_operand(const Graph& graph,
                                                            const Partition& parts) {
  std::map<ValueId, std::vector<int>> products;
  for (int g = 0; g < parts.size(); ++g) {
    if (parts.group(g).kind != GroupKind::kContraction) continue;
    for (const ValueId member : parts.group(g).members) {
      if (graph[member].op->kind != OpKind::kContraction) continue;
      const ValueId a = through_views(graph, graph[member].inputs[0]).value,
                    b = through_views(graph, graph[member].inputs[1]).value;
      products[a].push_back(g);
      if (b != a) products[b].push_back(g);
    }
  }
  return products;
}

}  // namespace

void fuse_bias_gradient(const Graph& graph, const FuseOptions& options, Partition& parts) {
  if (!options.arena_fits_binding) return;
  const std::map<ValueId, std::vector<int>> products = contractions_by_operand(graph, parts);
  for (int from = 0; from < parts.size(); ++from) {
    const Group& sums = parts.group(from);
    const bool sums_over_k =
        sums.kind == GroupKind::kColumn || (sums.kind == GroupKind::kRow && sums.rows == 1);
    if (!sums_over_k || sums.members.size() != 1) continue;
    const ValueId sum = sums.members[0];
    if (graph[sum].op != &ops::reduce_sum) continue;
    const Source of = through_views(graph, graph[sum].inputs[0]);
    const Shape kept = graph[sum].type.shape;
    const Shape& whole = graph[graph[sum].inputs[0]].type.shape;
    const bool leading = std::equal(kept.rbegin(), kept.rend(), whole.rbegin());
    if (!leading || !of.map.is_identity()) continue;
    const auto found = products.find(of.value);
    if (found == products.end()) continue;
    for (const int g : found->second) {
      if (!takes_column_sum(graph, options, parts, g, of.value, sums.rows, sums.cols, sum))
        continue;
      parts.move(sum, g);
      break;
    }
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
