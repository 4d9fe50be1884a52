// SPDX-License-Identifier: MIT
#include "passes/expand.h"

#include "base/check.h"
#include "ops/expr.h"
#include "passes/rewrite_log.h"

namespace tensorgrad {

Graph expand(const Graph& graph) {
  const RewriteLog log("expand");
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->kind != OpKind::kMacro) return kNoValue;
    const std::string origin = node.origin.empty() ? node.op->name : node.origin;
    Builder builder{out, node.site, origin, origin};  // what is too large is called the macro's
    ExpandContext ctx(builder, node);
    const ValueId value = node.op->expand(ctx);
    CHECK(out[value].type == node.type, node.op->name);
    log.replaced(node.op->name, out, node, value);
    return value;
  });
}

}  // namespace tensorgrad
