// SPDX-License-Identifier: MIT
#include "passes/fuse/limit_concat.h"

#include <algorithm>

#include "base/check.h"
#include "ops/expr.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

Graph limit_concat(const Graph& graph, int most_parts) {
  CHECK(most_parts >= 2);
  const auto most = static_cast<std::size_t>(most_parts);
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->kind != OpKind::kConcat || node.inputs.size() <= most) return kNoValue;
    Builder builder{out, node.location, node.origin};
    const auto axis = static_cast<int>(node.attrs.integer("axis"));
    std::vector<Expr> parts;
    for (const ValueId input : node.inputs) parts.push_back({&builder, input});
    while (parts.size() > 1) {
      std::vector<Expr> joined;
      for (std::size_t first = 0; first < parts.size(); first += most) {
        const std::size_t count = std::min(most, parts.size() - first);
        const auto from = parts.begin() + static_cast<std::ptrdiff_t>(first);
        const std::vector<Expr> some(from, from + static_cast<std::ptrdiff_t>(count));
        joined.push_back(count == 1 ? some[0] : op::concat(some, axis));
      }
      parts = std::move(joined);
    }
    return parts[0].id;
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
