// SPDX-License-Identifier: MIT
#include "passes/split_scatter.h"

#include <algorithm>

#include "ops/expr.h"
#include "ops/structured.h"
#include "passes/divisor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns 1 if the line is not split.
std::int64_t parts_of_line(const GpuModel& gpu, const AxisSplit& line, std::int64_t size) {
  if (line.pre * line.size * line.post < gpu.many_addends) return 1;
  const std::int64_t fill = gpu.wanted_sums / (line.pre * size * line.post);
  const std::int64_t most = line.size / std::max(gpu.min_part_addends, size * gpu.addends_per_sum);
  return std::max<std::int64_t>(1, divisor_near(line.size, std::min(fill, most), 2, 2 * most));
}

}  // namespace

Graph split_scatter(const Graph& graph, bool always, const GpuModel& gpu) {
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op != &ops::scatter_add) return kNoValue;
    Builder builder{out, node.location, node.origin};
    const Expr source{&builder, node.inputs[0]}, index{&builder, node.inputs[1]};
    const std::int64_t axis = node.attrs.integer("axis"), size = node.attrs.integer("size");
    const AxisSplit line = split_at(source.shape(), axis);
    const std::int64_t parts = always ? least_divisor(line.size) : parts_of_line(gpu, line, size);
    if (parts == 1) return kNoValue;
    Shape cut = source.shape();
    const auto at = cut.begin() + axis;
    *at /= parts;
    cut.insert(at, parts);
    const Expr sums = op::scatter_add(op::reshape(source, cut), op::reshape(index, cut),
                                      static_cast<int>(axis) + 1, size);
    return op::sum(sums, {axis}).id;
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
