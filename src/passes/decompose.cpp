// SPDX-License-Identifier: MIT
#include "passes/decompose.h"

#include "base/check.h"
#include "ops/expr.h"
#include "passes/rewrite_log.h"
#include "passes/simplify.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

Graph decompose_where(const Graph& graph, const std::function<bool(const Node& node)>& which) {
  const RewriteLog log("expand");
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->expand == nullptr || !which(node)) return kNoValue;
    const std::string origin = node.origin.empty() ? node.op->name : node.origin;
    // Errors about sizes name the composite op.
    Builder builder{out, node.location, origin, origin};
    ExpandContext ctx(builder, node);
    const ValueId value = node.op->expand(ctx);
    CHECK(out[value].type == node.type, node.op->name);
    log.replaced(node.op->name, out, node, value);
    return value;
  });
}

Graph expand(const Graph& graph) {
  // dce() first: an unused gradient may expand to tensors that are too large.
  return decompose_where(dce(graph),
                         [](const Node& node) { return node.op->kind == OpKind::kComposite; });
}

Graph decompose_all(const Graph& graph) {
  return decompose_where(graph, [](const Node&) { return true; });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
