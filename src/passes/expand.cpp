// SPDX-License-Identifier: MIT
#include "passes/expand.h"

#include "base/check.h"
#include "ops/expr.h"
#include "passes/rewrite_log.h"

namespace tensorgrad {

namespace {

Graph expand_if(const Graph& graph, bool all) {
  const RewriteLog log("expand");
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->expand == nullptr || (!all && node.op->kind != OpKind::kMacro)) return kNoValue;
    const std::string origin = node.origin.empty() ? node.op->name : node.origin;
    Builder builder{out, node.site, origin, origin};  // what is too large is called the macro's
    ExpandContext ctx(builder, node);
    const ValueId value = node.op->expand(ctx);
    CHECK(out[value].type == node.type, node.op->name);
    log.replaced(node.op->name, out, node, value);
    return value;
  });
}

}  // namespace

Graph expand(const Graph& graph) { return expand_if(graph, false); }
Graph expand_all(const Graph& graph) { return expand_if(graph, true); }

}  // namespace tensorgrad
