// SPDX-License-Identifier: MIT
#include "passes/split_reduce.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/divide.h"
#include "ir/sources.h"
#include "ops/pointwise.h"
#include "ops/structured.h"
#include "passes/divisor.h"
#include "passes/fuse/fuse.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::int64_t kRowThreads = 256;  // threads that share a row
// Elements of a part that are worth a workgroup. Strided rows (columns) are best read by few
// threads each. With more, a workgroup has too few adjacent rows to read whole cache lines. So more
// rows are needed to fill a GPU.
constexpr std::int64_t kMinPart = 1024, kMinOfColumn = 32;
constexpr std::int64_t kMaxParts = 1024;

// True if rows are strided and adjacent rows contiguous, as for columns of a matrix.
bool of_columns(const Graph& graph, const Node& reduce) {
  const Shape& shape = graph[reduce.inputs[0]].type.shape;
  return !contains(reduce.attrs.list("axes"), static_cast<std::int64_t>(shape.size()) - 1);
}

bool pays(const GpuModel& gpu, const ReduceShape& shape, bool columns) {
  const bool long_column = columns && shape.cols >= gpu.long_column;
  if (long_column && shape.rows * shape.cols >= gpu.many_column_elements) return true;
  if (shape.rows >= gpu.full_rows) return false;
  // With fewer rows, fuse() does not fuse the reduction with its elements anyway.
  const bool in_group = shape.trailing && shape.rows >= kFewRows;
  return shape.cols / kRowThreads >= (in_group ? gpu.long_walk_of_group : gpu.long_walk);
}

// Returns the bytes from the first to the last element that a row reads.
std::int64_t row_bytes(const Graph& graph, const Node& reduce, const ReduceShape& shape) {
  const Source source = through_views(graph, reduce.inputs[0]);
  const OffsetSpan span = offset_span(compose(IndexMap{{shape.order}}, source.map), 0, shape.cols);
  return (span.high - span.low + 1) * static_cast<std::int64_t>(kWordBytes);
}

// Returns the number of parts, at least `least`, for an axis of n elements. Prefers a divisor of n
// near the wanted number.
std::int64_t part_count(const GpuModel& gpu, std::int64_t n, std::int64_t rows, std::int64_t least,
                        bool columns) {
  least = std::max(least, ceil_div(kFewRows, rows));
  const std::int64_t part = columns ? kMinOfColumn : kMinPart;
  const std::int64_t most = std::max(least, std::min(kMaxParts, n / part));
  const std::int64_t wanted =
      std::clamp((columns ? gpu.wanted_columns : gpu.wanted_rows) / rows, least, most);
  const std::int64_t parts = divisor_near(n, wanted, least, n);
  if (parts > 0) return parts;
  return ceil_div(n, ceil_div(n, wanted));
}

// Returns the identity element of the reduction.
double identity_of(const OpDef& op, DType dtype) {
  if (&op == &ops::reduce_sum) return 0;
  const bool max = &op == &ops::reduce_max || &op == &ops::argmax;
  if (dtype == DType::kF32) {
    const double infinity = std::numeric_limits<double>::infinity();
    return max ? -infinity : infinity;
  }
  if (dtype == DType::kI32) {
    using Limits = std::numeric_limits<std::int32_t>;
    return max ? Limits::min() : Limits::max();
  }
  return max ? 0 : std::numeric_limits<std::uint32_t>::max();
}

// The split of one reduction. run() returns kNoValue if there is nothing to split or the padded
// operand would be too large. `least_parts` 0: two parts, whatever is best.
class Split {
 public:
  Split(const GpuModel& gpu, Builder& builder, const Node& node, std::int64_t least_parts,
        bool columns)
      : builder_(builder), node_(node), x_{&builder, node.inputs[0]} {
    join_axes();
    size_ = shape_[at_];
    std::int64_t rows = 1;
    for (std::size_t d = 0; d < shape_.size(); ++d) rows *= reduced_[d] ? 1 : shape_[d];
    parts_ = least_parts == 0 ? std::min<std::int64_t>(2, size_)
                              : part_count(gpu, size_, rows, least_parts, columns);
    each_ = ceil_div(size_, parts_);
  }

  ValueId run() {
    if (parts_ == 1) return kNoValue;
    const std::int64_t others = numel(shape_) / size_;  // the padded operand must be a valid tensor
    if (parts_ * each_ > std::numeric_limits<std::int32_t>::max() / others) return kNoValue;
    cut();
    std::vector<std::int64_t> axes;  // of the first half: all but the parts
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const auto axis = static_cast<std::int64_t>(d);
      if (d < at_ && reduced_[d]) axes.push_back(axis);
      if (d >= at_ && reduced_[d]) axes.push_back(axis + 1);
      if (d < at_ && !reduced_[d]) ++part_axis_;
    }
    const bool arg = node_.op == &ops::argmax || node_.op == &ops::argmin;
    return arg ? finish_arg(axes) : reduce(*node_.op, reduce(*node_.op, x_, axes), part_axis_).id;
  }

 private:
  // Merges adjacent reduced axes and selects the longest reduced axis.
  void join_axes() {
    const Shape shape = x_.shape();
    const auto& axes = node_.attrs.list("axes");
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool reduced = contains(axes, static_cast<std::int64_t>(d));
      if (reduced && !reduced_.empty() && reduced_.back()) {
        shape_.back() *= shape[d];
      } else {
        shape_.push_back(shape[d]);
        reduced_.push_back(reduced);
      }
    }
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (reduced_[d] && (!reduced_[at_] || shape_[d] > shape_[at_])) at_ = d;
    }
  }

  // Reshapes x_ to [.., parts, each, ..], with padding if necessary.
  void cut() {
    x_ = op::reshape(x_, shape_);
    const std::int64_t missing = parts_ * each_ - size_;
    Shape whole = shape_;
    whole[at_] += missing;
    if (missing > 0) {
      std::vector<std::int64_t> before(shape_.size(), 0), after(shape_.size(), 0);
      after[at_] = missing;
      x_ = op::pad(x_, before, after);
      const double identity = identity_of(*node_.op, x_.dtype());
      if (identity != 0) {
        const Expr place = op::iota(builder_, whole, static_cast<int>(at_), DType::kI32);
        x_ = op::where(op::lt(place, static_cast<double>(size_)), x_, identity);
      }
    }
    whole[at_] = each_;
    whole.insert(whole.begin() + static_cast<std::ptrdiff_t>(at_), parts_);
    x_ = op::reshape(x_, whole);
  }

  Expr reduce(const OpDef& op, Expr x, const std::vector<std::int64_t>& axes) {
    return op::apply(builder_, op, {x}, {{"axes", axes}});
  }
  Expr reduce(const OpDef& op, Expr x, std::int64_t axis) {
    return reduce(op, x, std::vector<std::int64_t>{axis});
  }

  // Computes the extreme of each part and its index within the part, then selects the index of the
  // best part.
  ValueId finish_arg(const std::vector<std::int64_t>& axes) {
    const OpDef& extreme = node_.op == &ops::argmax ? ops::reduce_max : ops::reduce_min;
    const Expr best = parts_last(reduce(extreme, x_, axes));
    const Expr within = parts_last(reduce(*node_.op, x_, axes));
    const std::int64_t last = static_cast<std::int64_t>(best.shape().size()) - 1;
    const Expr part = op::iota(builder_, best.shape(), static_cast<int>(last), DType::kI32);
    const Expr chosen = op::expand_reduced(reduce(*node_.op, best, last), {last}, best.shape());
    const Expr place = part * static_cast<double>(each_) + within;
    return op::sum(op::where(op::eq(part, chosen), place, 0), {last}).id;
  }

  // Moves the parts to the last axis, so that both partial results and what reads them can be
  // fused.
  Expr parts_last(Expr x) const {
    std::vector<std::int64_t> axes;
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(x.shape().size()); ++d) {
      if (d != part_axis_) axes.push_back(d);
    }
    if (part_axis_ == static_cast<std::int64_t>(axes.size())) return x;
    axes.push_back(part_axis_);
    return op::permute(x, axes);
  }

  Builder& builder_;
  const Node& node_;
  Expr x_;
  Shape shape_;                // adjacent reduced axes merged
  std::vector<bool> reduced_;  // per axis of shape_
  std::size_t at_ = 0;         // the axis that is split
  std::int64_t size_ = 1, parts_ = 1, each_ = 1;
  std::int64_t part_axis_ = 0;  // of the parts, in the result of the first half
};

// Returns (value, k) for the operands of unbatched products. Their sums over k are fused with the
// product.
std::set<std::pair<ValueId, std::int64_t>> product_operands(const Graph& graph) {
  std::set<std::pair<ValueId, std::int64_t>> found;
  for (const Node& node : graph.nodes) {
    if (node.op->kind != OpKind::kContraction || node.type.shape.size() != 2) continue;
    const std::int64_t k = graph[node.inputs[1]].type.shape[0];
    for (const ValueId input : node.inputs) found.emplace(through_views(graph, input).value, k);
  }
  return found;
}

}  // namespace

Graph split_reduce(const Graph& graph, std::int64_t most_bytes, bool always, const GpuModel& gpu) {
  const auto operands = product_operands(graph);
  ValueId id = -1;  // of the node in the old graph; nodes are visited in order
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    ++id;
    if (node.op->kind != OpKind::kReduce) return kNoValue;
    const ReduceShape shape = reduce_shape(graph, graph[id]);
    const std::int64_t bytes = most_bytes == 0 ? 0 : row_bytes(graph, graph[id], shape);
    const bool columns = of_columns(graph, graph[id]) && shape.rows < gpu.full_columns;
    const bool fits = bytes <= most_bytes;
    if (!always && fits && !pays(gpu, shape, columns)) return kNoValue;
    const ValueId summed = through_views(graph, graph[id].inputs[0]).value;
    if (node.op == &ops::reduce_sum && operands.contains({summed, shape.cols})) return kNoValue;
    Builder builder{out, node.location, node.origin};
    // Twice the necessary number of parts: a binding may start before its part, and parts may
    // differ in size.
    const std::int64_t least = !fits ? 2 * (bytes / most_bytes + 1) : always ? 0 : 2;
    return Split(gpu, builder, node, least, columns).run();
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
