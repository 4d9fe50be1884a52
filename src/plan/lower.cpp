// SPDX-License-Identifier: MIT
// Lowers groups to launches. The root node determines the kind of launch; all other nodes become
// scalar programs and stores.
#include "plan/lower.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/visits.h"
#include "ir/sources.h"
#include "ops/opaque.h"
#include "ops/pointwise.h"
#include "ops/structured.h"
#include "plan/program_builder.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::size_t kNameParts = 4;

// Sets the name ("matmul_add_relu"), the fused ops with their shapes, and the locations.
void describe(const Graph& graph, const std::vector<ValueId>& members, Launch& launch) {
  std::vector<std::string> parts;
  std::set<std::pair<std::string, unsigned>> locations;
  for (const ValueId id : members) {
    const Node& node = graph[id];
    launch.ops.push_back(std::string(node.op->name) + " " + to_string(node.type));
    const std::string part = node.origin.empty() ? node.op->name : node.origin;
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
    if (node.location.known() &&
        locations.insert({node.location.file, node.location.line}).second) {
      launch.locations.push_back(node.location);
    }
  }
  for (std::size_t i = 0; i < std::min(kNameParts, parts.size()); ++i) {
    launch.name += (i > 0 ? "_" : "") + parts[i];
  }
  std::replace(launch.name.begin(), launch.name.end(), '.', '_');
  if (parts.size() > kNameParts) launch.name += "_etc";
}

// Returns the number of distinct elements that a map accesses: broadcast axes count once.
std::int64_t elements_touched(const IndexMap& map) {
  const View& last = map.views.back();
  std::int64_t count = 1;
  for (std::size_t d = 0; d < last.shape.size(); ++d) {
    if (last.strides[d] != 0) count *= last.shape[d];
  }
  return count;
}

void count_work(Launch& launch) {
  std::int64_t bytes = 0, ops = 0;
  const auto move = [&](std::int64_t elements, DType dtype) {
    bytes += elements * static_cast<std::int64_t>(element_bytes(dtype));
  };
  const auto program = [&](const ScalarProgram& p, std::int64_t domain) {
    std::set<std::pair<int, std::string>> seen;
    for (const Instr& instr : p.instrs) {
      if (instr.kind == InstrKind::kOp)
        ops += instr.level == Level::kElement ? domain : launch.by_rows ? launch.m : launch.rows;
      if (instr.kind == InstrKind::kReduce) ops += domain;
      if (instr.kind != InstrKind::kLoad && instr.kind != InstrKind::kLoadAt) continue;
      const Access& access = p.accesses[static_cast<size_t>(instr.index)];
      if (!seen.insert({access.binding, to_string(access.map)}).second) continue;
      move(instr.kind == InstrKind::kLoadAt ? domain : elements_touched(access.map), access.dtype);
    }
  };
  std::int64_t domain = launch.rows * launch.cols;
  if (launch.kind == LaunchKind::kContraction) {
    program(launch.a, launch.batch * launch.m * launch.k);
    program(launch.b, launch.batch * launch.k * launch.n);
    const std::int64_t products = launch.batch * launch.m * launch.n;
    ops += 2 * products * launch.k;
    domain = products * launch.parts;
  }
  if (launch.kind == LaunchKind::kScatter) {
    const std::int64_t sources = launch.pre * launch.count * launch.post;
    program(launch.scatter_index, sources);
    program(launch.scatter_source, sources);
    domain = launch.pre * launch.size * launch.post;
    ops += sources;
  }
  if (launch.kind == LaunchKind::kOpaque) {
    for (std::size_t i = 0; i < launch.inputs.size(); ++i) {
      program(launch.inputs[i], launch.opaque->inputs[i].size);
    }
    ops += launch.opaque->flops;
  }
  if (launch.kind == LaunchKind::kScan || launch.kind == LaunchKind::kSort) {
    domain = launch.pre * launch.count * launch.post;
    program(launch.a, domain);
    program(launch.b, domain);
    ops += domain;
  }
  program(launch.body, domain);
  for (const Store& store : launch.stores) move(store.map.domain_size(), store.dtype);
  if (launch.bias_grad_row) move(launch.n, launch.bias_grad_store.dtype);
  if (launch.bias_grad_column) move(launch.m, launch.bias_grad_store.dtype);
  launch.bytes_moved = bytes;
  launch.flops = ops;
}

class GroupLowering {
 public:
  GroupLowering(const Graph& graph, const Placement& placement, const ScalarWords& scalars,
                int group, const std::vector<ValueId>& members)
      : graph_(graph),
        placement_(placement),
        scalars_(scalars),
        members_(members),
        context_{graph, placement, scalars, group, launch_} {}

  Launch run() {
    describe(graph_, members_, launch_);
    for (const ValueId id : members_) {
      const OpKind kind = graph_[id].op->kind;
      const bool root = kind == OpKind::kContraction || kind == OpKind::kScatter ||
                        kind == OpKind::kScan || kind == OpKind::kSort || kind == OpKind::kOpaque;
      if (root) root_ = id;
      if (kind == OpKind::kReduce && reduce_ == kNoValue) reduce_ = id;
    }
    const OpKind root = root_ == kNoValue ? OpKind::kLeaf : graph_[root_].op->kind;
    if (root == OpKind::kContraction) {
      lower_contraction();
    } else if (root == OpKind::kScatter) {
      lower_scatter();
    } else if (root == OpKind::kOpaque) {
      lower_opaque();
    } else if (root != OpKind::kLeaf) {
      lower_lines(root);
    } else if (graph_[members_.back()].op->kind == OpKind::kIndexUpdate) {
      lower_index_update();
    } else if (reduce_ != kNoValue) {
      lower_rows();
    } else {
      lower_map();
    }
    count_work(launch_);
    return std::move(launch_);
  }

 private:
  void lower_map() {
    launch_.kind = LaunchKind::kMap;
    launch_.rows = numel(graph_[members_.front()].type.shape);
    ProgramBuilder body(context_, launch_.body, launch_.rows, 1, false);
    for (const ValueId id : members_) store_element(body, id);
  }

  // A map over the new elements, stored from a run-time offset on.
  void lower_index_update() {
    launch_.kind = LaunchKind::kMap;
    const ValueId id = members_.back();
    const Node& node = graph_[id];
    const Shape& slice = graph_[node.inputs[1]].type.shape;
    const auto axis = static_cast<size_t>(node.attrs.integer("axis"));
    launch_.rows = numel(slice);
    ProgramBuilder body(context_, launch_.body, launch_.rows, 1, false);
    for (const ValueId member : members_) {
      if (member != id) store_element(body, member);
    }
    const auto place = placement_.places.find(id);
    if (place == placement_.places.end()) return;
    const int value =
        body.value(unrounded(node.inputs[1]), IndexMap::identity(slice), Level::kElement);
    View lines = View::contiguous(graph_[node.inputs[2]].type.shape);
    lines.shape = slice;
    lines.strides[axis] = 0;
    int at = body.value(node.inputs[2], IndexMap{{lines}}, Level::kElement);
    if (slice[axis] > 1) at = body.op(ops::add, {at, body.coordinate(slice, axis)}, DType::kI32);
    Store store =
        make_store(place->second, node.type.dtype, Level::kElement, launch_.rows, value, -1);
    View rows = View::contiguous(node.type.shape);
    store.at = at;
    store.at_stride = rows.strides[axis];
    store.at_size = node.type.shape[axis];
    rows.shape = slice;
    rows.strides[axis] = 0;
    rows.offset = place->second.offset;
    store.map = IndexMap{{rows.simplified()}};
    launch_.bindings[static_cast<size_t>(store.binding)].mode = BindMode::kReadWrite;
    launch_.stores.push_back(std::move(store));
  }

  void lower_rows() {
    launch_.kind = LaunchKind::kRow;
    const ReduceShape shape = reduce_shape(graph_, graph_[reduce_]);
    launch_.rows = shape.rows;
    launch_.cols = shape.cols;
    ProgramBuilder body(context_, launch_.body, shape.rows, shape.cols, true);
    store_rows(body, shape.rows, shape.cols);
  }

  // Stores reductions and other values with one element per row by row, the rest by element.
  void store_rows(ProgramBuilder& body, std::int64_t rows, std::int64_t cols) {
    for (const ValueId id : members_) {
      const bool row_level =
          graph_[id].op->kind == OpKind::kReduce || numel(graph_[id].type.shape) != rows * cols;
      if (row_level) {
        store(body, id, Level::kRow, rows);
      } else {
        store_element(body, id);
      }
    }
  }

  void lower_contraction() {
    launch_.kind = LaunchKind::kContraction;
    const Node& product = graph_[root_];
    const Shape& a_shape = graph_[product.inputs[0]].type.shape;
    const std::size_t rank = a_shape.size();
    launch_.m = a_shape[rank - 2];
    launch_.k = a_shape[rank - 1];
    launch_.n = product.type.shape.back();
    (product.type.shape.size() > rank ? launch_.parts : launch_.batch) =
        numel(product.type.shape) / (launch_.m * launch_.n);
    if (launch_.parts > 1) launch_.part_depth = product.attrs.integer(ops::kPartDepth);
    operand(product.inputs[0], launch_.a);
    operand(product.inputs[1], launch_.b);
    if (reduces_own()) return lower_row_epilogue();
    ProgramBuilder body(context_, launch_.body, numel(product.type.shape), 1, false, root_);
    for (const ValueId id : members_) {
      if (id == reduce_) {
        // The sum over k of one operand. Sizes and source tell which one.
        const Source summed = through_views(graph_, graph_[id].inputs[0]);
        const Source b = through_views(graph_, product.inputs[1]);
        launch_.bias_grad_row = summed.value == b.value && b.map.is_identity() &&
                                numel(graph_[id].type.shape) == launch_.n;
        launch_.bias_grad_column = !launch_.bias_grad_row;
        launch_.bias_grad_store = make_store(placement_.places.at(id), DType::kF32, Level::kElement,
                                             launch_.bias_grad_row ? launch_.n : launch_.m, 0, -1);
      } else {
        store_element(body, id);
      }
    }
  }

  // True if the reduction reads a result of the launch. Otherwise it is the sum of an operand.
  [[nodiscard]] bool reduces_own() const {
    if (reduce_ == kNoValue) return false;
    std::set<ValueId> seen;
    std::vector<ValueId> open = graph_[reduce_].inputs;
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (!seen.insert(id).second) continue;
      visit();
      const Node& node = graph_[id];
      if (std::find(members_.begin(), members_.end(), id) != members_.end()) return true;
      if (node.op->kind == OpKind::kView || node.group < 0)
        open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return false;
  }

  void lower_row_epilogue() {
    launch_.by_rows = true;
    ProgramBuilder body(context_, launch_.body, launch_.m, launch_.n, true, root_);
    store_rows(body, launch_.m, launch_.n);
  }

  void operand(ValueId id, ScalarProgram& program) {
    const Shape& shape = graph_[id].type.shape;
    ProgramBuilder builder(context_, program, numel(shape), 1, false);
    end_with(program, builder.value(id, IndexMap::identity(shape), Level::kElement));
  }

  // Checks that the value of an operand program is its last instruction.
  static void end_with(ScalarProgram& program, int value) {
    CHECK(value == static_cast<int>(program.instrs.size()) - 1,
          "an operand's value is not made last");
  }

  void lower_scatter() {
    launch_.kind = LaunchKind::kScatter;
    const Node& node = graph_[root_];
    const Shape& from = graph_[node.inputs[0]].type.shape;
    const auto axis = static_cast<size_t>(node.attrs.integer("axis"));
    for (std::size_t d = 0; d < from.size(); ++d) {
      (d < axis ? launch_.pre : d == axis ? launch_.count : launch_.post) *= from[d];
    }
    launch_.size = node.type.shape[axis];
    operand(node.inputs[0], launch_.scatter_source);
    scatter_index(node.inputs[1]);
    ProgramBuilder body(context_, launch_.body, numel(node.type.shape), 1, false, root_);
    for (const ValueId id : members_) store_element(body, id);
  }

  // Lowers scans and sorts.
  void lower_lines(OpKind kind) {
    launch_.kind = kind == OpKind::kScan ? LaunchKind::kScan : LaunchKind::kSort;
    const Node& node = graph_[root_];
    const AxisSplit lines = split_at(node.type.shape, node.attrs.integer("axis"));
    launch_.pre = lines.pre;
    launch_.count = lines.size;
    launch_.post = lines.post;
    if (kind == OpKind::kSort) {
      launch_.descending = node.attrs.integer("descending") != 0;
    } else {
      launch_.reverse = node.attrs.integer("reverse") != 0;
      launch_.scan = node.op == &ops::cumsum              ? ScanOp::kSum
                     : node.op == &ops::cumprod           ? ScanOp::kProduct
                     : node.op == &ops::linear_recurrence ? ScanOp::kLinear
                     : node.op == &ops::arg_cummax        ? ScanOp::kArgMax
                                                          : ScanOp::kArgMin;
    }
    const bool product = node.op == &ops::cumprod || node.op == &ops::linear_recurrence;
    if (product) operand(node.inputs[0], launch_.a);
    if (node.op != &ops::cumprod) operand(node.inputs.back(), launch_.b);
    ProgramBuilder body(context_, launch_.body, numel(node.type.shape), 1, false, root_);
    for (const ValueId id : members_) store_element(body, id);
  }

  void lower_opaque() {
    launch_.kind = LaunchKind::kOpaque;
    const Node& node = graph_[root_];
    launch_.opaque = opaque_kernel(graph_, node);
    const OpaqueKernel& kernel = *launch_.opaque;
    if (!kernel.label.empty()) launch_.name = kernel.label;
    for (const OpaqueInput& input : kernel.inputs) {
      launch_.inputs.emplace_back();
      if (input.absent()) continue;
      operand(node.inputs[static_cast<std::size_t>(input.operand)], launch_.inputs.back());
    }
    for (const ValueId id : members_) store_results(id);
  }

  // Stores the results of the kernel that an op returns, consecutively in one flat value.
  void store_results(ValueId id) {
    if (!placement_.places.contains(id)) return;
    BufferRange place = placement_.places.at(id);
    const int only = graph_[id].op->only_result;
    for (int i = 0; i < static_cast<int>(launch_.opaque->results.size()); ++i) {
      if (only >= 0 && i != only) continue;
      const std::int64_t size = launch_.opaque->results[static_cast<std::size_t>(i)].size;
      launch_.stores.push_back(
          make_store(place, graph_[id].type.dtype, Level::kElement, size, i, -1));
      place.offset += size;
    }
  }

  // Converts u32 to i32 bitwise: indices above the i32 range become negative, and both are out of
  // range.
  void scatter_index(ValueId id) {
    ScalarProgram& program = launch_.scatter_index;
    ProgramBuilder builder(context_, program, numel(graph_[id].type.shape), 1, false);
    int value = builder.value(id, IndexMap::identity(graph_[id].type.shape), Level::kElement);
    if (graph_[id].type.dtype == DType::kU32)
      value = builder.op(ops::bitcast, {value}, DType::kI32);
    end_with(program, value);
  }

  void store_element(ProgramBuilder& body, ValueId id) {
    store(body, id, Level::kElement, numel(graph_[id].type.shape));
  }

  void store(ProgramBuilder& body, ValueId id, Level level, std::int64_t domain) {
    const auto place = placement_.places.find(id);
    if (place == placement_.places.end()) return;
    const int ring_word = placement_.ringed.contains(id) ? scalars_.at(kRingScalar) : -1;
    const int value = body.value(unrounded(id), IndexMap::identity({domain}), level);
    launch_.stores.push_back(
        make_store(place->second, graph_[id].type.dtype, level, domain, value, ring_word));
  }

  // Returns the value to store for `id`: storing as f16 already rounds, so the cast is skipped.
  [[nodiscard]] ValueId unrounded(ValueId id) const {
    const Node& node = graph_[id];
    const bool rounds = node.op == &ops::cast && node.type.dtype == DType::kF16 &&
                        placement_.stored(DType::kF16) == DType::kF16;
    return rounds && graph_[node.inputs[0]].type.dtype == DType::kF32 ? node.inputs[0] : id;
  }

  Store make_store(const BufferRange& place, DType dtype, Level level, std::int64_t domain,
                   int value, int ring_word) {
    Store store;
    store.binding = context_.bind(place.buffer, true);
    store.dtype = placement_.stored(dtype);
    store.level = level;
    store.map = IndexMap::identity({domain});
    store.map.views[0].offset = place.offset;
    store.value = value;
    store.ring_word = ring_word;
    return store;
  }

  const Graph& graph_;
  const Placement& placement_;
  const ScalarWords& scalars_;
  const std::vector<ValueId>& members_;
  Launch launch_;
  LaunchContext context_;
  ValueId root_ = kNoValue, reduce_ = kNoValue;
};

}  // namespace

Launch lower_group(const Graph& graph, const Placement& placement, const ScalarWords& scalars,
                   int group, const std::vector<ValueId>& members) {
  return GroupLowering(graph, placement, scalars, group, members).run();
}

Launch lower_copy(const Graph& graph, const Placement& placement, const ScalarWords& scalars,
                  ValueId value, const BufferRange& to) {
  Launch launch;
  launch.name = "copy";
  const Type& type = graph[value].type;
  launch.ops = {"copy " + to_string(type)};
  if (graph[value].location.known()) launch.locations = {graph[value].location};
  launch.rows = numel(type.shape);
  LaunchContext context{graph, placement, scalars, -1, launch};
  ProgramBuilder body(context, launch.body, launch.rows, 1, false);
  Store store;
  store.value = body.value(value, IndexMap::identity(type.shape), Level::kElement);
  store.binding = context.bind(to.buffer, true);
  store.dtype = placement.stored(type.dtype);
  const std::int64_t bytes = launch.rows * static_cast<std::int64_t>(element_bytes(store.dtype));
  store.map = IndexMap::identity({launch.rows});
  store.map.views[0].offset = to.offset;
  launch.stores.push_back(std::move(store));
  launch.bytes_moved = 2 * bytes;
  return launch;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
