// SPDX-License-Identifier: MIT
#include "passes/split_k_to_binding_limit.h"

#include <algorithm>

#include "base/divide.h"
#include "ir/sources.h"
#include "ops/expr.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::int64_t kMaxBindingSplits = 1024;

// One matrix of an operand: its size, its source and which of its axes is k.
struct Operand {
  Source source;
  std::int64_t rows = 1, cols = 1;
  bool k_is_last = false;
};

Operand operand_of(const Graph& graph, ValueId id, bool k_is_last) {
  const Shape& shape = graph[id].type.shape;
  return {through_views(graph, id), shape[shape.size() - 2], shape[shape.size() - 1], k_is_last};
}

// Returns the bytes from the first to the last element that a launch must bind for `each` steps of
// k: of one row of a, or of all of b.
std::int64_t bytes_at_once(const Operand& x, std::int64_t each) {
  const Shape shape{numel(x.source.map.views.front().shape) / (x.rows * x.cols), x.rows, x.cols};
  View part = View::contiguous(shape);
  part.shape = x.k_is_last ? Shape{1, 1, each} : Shape{1, each, x.cols};
  const IndexMap map = compose(IndexMap{{part}}, x.source.map);
  const OffsetSpan span = offset_span(map, 0, numel(part.shape));
  return (span.high - span.low + 1) * static_cast<std::int64_t>(kWordBytes);
}

// Returns the number of ranges of k: 1 if the product fits, or if no number makes it fit.
std::int64_t parts_of_product(const Operand& a, const Operand& b, std::int64_t k,
                              std::int64_t most) {
  for (std::int64_t parts = 1; parts <= std::min(k, kMaxBindingSplits); parts *= 2) {
    const std::int64_t each = ceil_div(k, parts);
    // A binding starts at a multiple of 256 bytes, which may be before the range.
    if (std::max(bytes_at_once(a, each), bytes_at_once(b, each)) + 256 <= most) return parts;
  }
  return 1;
}

// Returns steps [from, to) of k, which is axis `back` from the end.
Expr stretch(Expr x, std::size_t back, std::int64_t from, std::int64_t to) {
  Shape stop = x.shape();
  std::vector<std::int64_t> start(stop.size(), 0);
  start[stop.size() - back] = from;
  stop[stop.size() - back] = to;
  return op::slice(x, start, stop);
}

}  // namespace

Graph split_k_to_binding_limit(const Graph& graph, std::int64_t most_bytes, bool always) {
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->kind != OpKind::kContraction) return kNoValue;
    const Operand a = operand_of(out, node.inputs[0], true);
    const Operand b = operand_of(out, node.inputs[1], false);
    const std::int64_t parts =
        always ? std::min<std::int64_t>(2, a.cols) : parts_of_product(a, b, a.cols, most_bytes);
    if (parts == 1) return kNoValue;
    const std::int64_t each = ceil_div(a.cols, parts);
    Builder builder{out, node.location, node.origin};
    Expr total;
    for (std::int64_t from = 0; from < a.cols; from += each) {
      const std::int64_t to = std::min(a.cols, from + each);
      const Expr product = op::matmul(stretch({&builder, node.inputs[0]}, 1, from, to),
                                      stretch({&builder, node.inputs[1]}, 2, from, to));
      total = from == 0 ? product : total + product;
    }
    return total.id;
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
