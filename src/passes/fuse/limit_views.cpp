// SPDX-License-Identifier: MIT
#include "passes/fuse/limit_views.h"

#include <map>
#include <utility>

#include "ops/expr.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "passes/rewrite_log.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::size_t kMaxWindows = 8;
constexpr int kMaxViews = 64;

// The index map from a view to the value below its views, and the number of these views.
struct Path {
  IndexMap map;
  int views = 1;
};

}  // namespace

Graph limit_views(const Graph& graph) {
  std::map<ValueId, Path> paths;  // by view of the new graph
  const RewriteLog log("limit_views");
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->kind != OpKind::kView) return kNoValue;
    const ValueId input = node.inputs[0];
    Path path{IndexMap{{node.op->view(out[input].type, node.attrs)}}};
    if (const auto below = paths.find(input); below != paths.end()) {
      path.map = compose(path.map, below->second.map);
      path.views = below->second.views + 1;
    }
    const ValueId view = out.append(node);
    if (path.map.views.size() <= kMaxWindows && path.views <= kMaxViews) {
      paths.emplace(view, std::move(path));
      return view;
    }
    Builder builder{out, node.location, node.origin};
    const ValueId copy = op::detach(Expr{&builder, view}).id;
    log.replaced("copy", out, node, copy);
    return copy;
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
