// SPDX-License-Identifier: MIT
// Looks through views, and views reductions as matrices.
#include "ir/sources.h"

#include <algorithm>

#include "base/visits.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

bool is_computed(const Node& node) {
  switch (node.op->kind) {
    case OpKind::kPointwise:
    case OpKind::kGather:
    case OpKind::kConcat:
    case OpKind::kReduce:
    case OpKind::kContraction:
    case OpKind::kScatter:
    case OpKind::kIndexUpdate:
    case OpKind::kComposite:
    case OpKind::kScan:
    case OpKind::kSort:
    case OpKind::kOpaque: return true;
    default: return false;
  }
}

Source through_views(const Graph& graph, ValueId id) {
  visit();
  Source source{id, IndexMap::identity(graph[id].type.shape)};
  while (graph[source.value].op->kind == OpKind::kView) {
    const Node& node = graph[source.value];
    const Type& input = graph[node.inputs[0]].type;
    source.map = compose(source.map, node.op->view(input, node.attrs));
    source.value = node.inputs[0];
    source.barrier |= node.op->barrier;
  }
  return source;
}

bool is_row_number(const IndexMap& map, std::int64_t rows, std::int64_t cols) {
  if (map.views.size() != 1 || map.masked()) return false;
  View expected{{rows, cols}, {1, 0}, 0, {}, {}};
  const View given = map.views[0].simplified();
  return given == expected.simplified();
}

ReduceShape reduce_shape(const Graph& graph, const Node& reduce) {
  const Shape& shape = graph[reduce.inputs[0]].type.shape;
  const auto& axes = reduce.attrs.list("axes");
  const View flat = View::contiguous(shape);
  ReduceShape result;
  for (const bool reduced : {false, true}) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool is_reduced =
          std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end();
      if (is_reduced != reduced) continue;
      (reduced ? result.cols : result.rows) *= shape[d];
      result.order.shape.push_back(shape[d]);
      result.order.strides.push_back(flat.strides[d]);
    }
  }
  result.trailing = result.order.is_identity();
  return result;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
