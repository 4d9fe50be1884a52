// SPDX-License-Identifier: MIT
#include "passes/fuse/fuse_row_operands.h"

#include <algorithm>
#include <vector>

#include "base/visits.h"
#include "ir/sources.h"
#include "kernel/program.h"
#include "ops/pointwise.h"
#include "passes/fuse/partition.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Every workgroup repeats the operations of these nodes, for a few columns of the product. A layer
// norm has 17.
constexpr std::size_t kMaxOperandMembers = 24;
// Their reductions need workgroup memory beside the rows. A layer norm has three.
constexpr int kMaxOperandReductions = 3;

// Maximum number of columns of the product: a workgroup has about eight.
constexpr std::int64_t kMaxOperandReaders = 1 << 14;

// Returns the product of a group that has one product of two matrices and no reduction, otherwise
// kNoValue.
ValueId only_product(const Graph& graph, const Group& group) {
  ValueId product = kNoValue;
  if (group.kind != GroupKind::kContraction) return product;
  for (const ValueId id : group.members) {
    const Node& node = graph[id];
    if (node.op->kind == OpKind::kReduce) return kNoValue;
    if (node.op->kind == OpKind::kContraction) product = id;
  }
  const bool matrices = product != kNoValue && graph[product].type.shape.size() == 2 &&
                        graph[graph[product].inputs[0]].type.shape.size() == 2;
  return matrices ? product : kNoValue;
}

bool has_few_reductions(const Graph& graph, const Group& rows) {
  int count = 0;
  for (const ValueId id : rows.members) {
    const Node& node = graph[id];
    if (node.op->kind != OpKind::kReduce) continue;
    if (node.type.dtype != DType::kF32) return false;  // argmax needs twice as much
    if (++count > kMaxOperandReductions) return false;
  }
  return true;
}

// True if the rows of group r are those of `product`, and nothing else reads them.
bool computes_operand(const Graph& graph, const Partition& parts, int r, ValueId product) {
  const Group& rows = parts.group(r);
  const Source a = through_views(graph, graph[product].inputs[0]);
  const Shape& shape = graph[graph[product].inputs[0]].type.shape;
  if (rows.closed || rows.members.size() > kMaxOperandMembers || a.barrier ||
      !a.map.is_identity() || parts.row_level(a.value) || !has_few_reductions(graph, rows))
    return false;
  const bool same_rows =
      rows.kind == GroupKind::kRow && rows.rows == shape[0] && rows.cols == shape[1];
  if (!same_rows && (rows.kind != GroupKind::kMap || rows.elements != shape[0] * shape[1]))
    return false;
  const std::vector<Source>& sources = parts.sources_of(product);
  visit(static_cast<std::int64_t>(rows.members.size() + sources.size()));
  const auto reads = std::count_if(sources.begin(), sources.end(), [&](const Source& source) {
    return parts.group_of(source.value) == r;
  });
  if (reads != 1) return false;  // the second operand reads them, too
  return std::all_of(rows.members.begin(), rows.members.end(), [&](ValueId member) {
    const std::vector<ValueId>& readers = parts.readers(member);
    return !parts.placed(member) && graph[member].op != &ops::detach &&
           std::all_of(readers.begin(), readers.end(), [&](ValueId reader) {
             return reader == product || parts.group_of(reader) == r;
           });
  });
}

}  // namespace

void fuse_row_operands(const Graph& graph, const FuseOptions& options, Partition& parts) {
  for (int g = 0; g < parts.size(); ++g) {
    const ValueId product = only_product(graph, parts.group(g));
    if (product == kNoValue) continue;
    const ValueId a = graph[product].inputs[0];
    const Shape& shape = graph[a].type.shape;
    if (shape[0] > kMaxOperandRows || numel(shape) > kMaxOperandElements) continue;
    // Larger products of several rows have tiles, which read each weight once.
    const std::int64_t columns = graph[product].type.shape[1];
    if (columns > kMaxOperandReaders ||
        (shape[0] > 1 && numel(shape) * columns > options.gpu.max_lane_products))
      continue;
    const int r = parts.group_of(through_views(graph, a).value);
    if (r < 0 || r == g || !computes_operand(graph, parts, r, product)) continue;
    if (parts.bindings_together(g, r) <= options.max_bindings) parts.merge(g, r);
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
