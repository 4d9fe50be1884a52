// SPDX-License-Identifier: MIT
// Lowers groups to launches. The root node determines the kind of launch; all other nodes become
// scalar programs and stores.
#include "plan/lower.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/overloaded.h"
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
  const Window window = window_of(launch);
  const auto program = [&](const ScalarProgram& p, std::int64_t domain) {
    std::set<std::pair<int, std::string>> seen;
    for (const Instr& instr : p.instrs) {
      if (instr.kind == InstrKind::kOp)
        ops += instr.level == Level::kElement ? domain : window.rows();
      if (instr.kind == InstrKind::kReduce) ops += domain;
      if (instr.kind != InstrKind::kLoad && instr.kind != InstrKind::kLoadAt) continue;
      const Access& access = p.accesses[static_cast<size_t>(instr.index)];
      if (!seen.insert({access.binding, to_string(access.map)}).second) continue;
      move(instr.kind == InstrKind::kLoadAt ? domain : elements_touched(access.map), access.dtype);
    }
  };
  const std::int64_t domain = window.rows() * window.columns;
  std::visit(Overloaded{
                 [](const MapLaunch&) {},
                 [](const RowLaunch&) {},
                 [&](const ContractionLaunch& p) {
                   program(p.a, p.batch * p.m * p.k);
                   program(p.b, p.batch * p.k * p.n);
                   ops += 2 * p.batch * p.m * p.n * p.k;
                 },
                 [&](const ScatterLaunch& scatter) {
                   const std::int64_t sources = scatter.pre * scatter.count * scatter.post;
                   program(scatter.index, sources);
                   program(scatter.source, sources);
                   ops += sources;
                 },
                 [&](const ScanLaunch& scan) {
                   program(scan.a, domain);
                   program(scan.b, domain);
                   ops += domain;
                 },
                 [&](const SortLaunch& sort) {
                   program(sort.keys, domain);
                   ops += domain;
                 },
                 [&](const OpaqueLaunch& opaque) {
                   for (std::size_t i = 0; i < opaque.inputs.size(); ++i)
                     program(opaque.inputs[i], opaque.kernel->inputs[i].size);
                   ops += opaque.kernel->flops;
                 },
             },
             launch.kind);
  program(launch.body, domain);
  for (const Store* store : stores_of(launch)) move(store->map.domain_size(), store->dtype);
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
    } else if (root == OpKind::kScan) {
      lower_scan();
    } else if (root == OpKind::kSort) {
      lower_sort();
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
  // Sets the kind of the launch.
  template <class Kind>
  Kind& make(Kind kind = {}) {
    return launch_.kind.emplace<Kind>(std::move(kind));
  }

  void lower_map() {
    const MapLaunch& map = make<MapLaunch>({numel(graph_[members_.front()].type.shape)});
    ProgramBuilder body(context_, launch_.body, map.rows, 1, false);
    for (const ValueId id : members_) store_element(body, id);
  }

  // A map over the new elements, stored from a run-time offset on.
  void lower_index_update() {
    const ValueId id = members_.back();
    const Node& node = graph_[id];
    const Shape& slice = graph_[node.inputs[1]].type.shape;
    const auto axis = static_cast<size_t>(node.attrs.integer("axis"));
    const MapLaunch& map = make<MapLaunch>({numel(slice)});
    ProgramBuilder body(context_, launch_.body, map.rows, 1, false);
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
    Store store = make_store(place->second, node.type.dtype, Level::kElement, map.rows, value, -1);
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
    const ReduceShape shape = reduce_shape(graph_, graph_[reduce_]);
    make<RowLaunch>({shape.rows, shape.cols});
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
    auto& launch = make<ContractionLaunch>();
    const Node& product = graph_[root_];
    const Shape& a_shape = graph_[product.inputs[0]].type.shape;
    const std::size_t rank = a_shape.size();
    launch.m = a_shape[rank - 2];
    launch.k = a_shape[rank - 1];
    launch.n = product.type.shape.back();
    (product.type.shape.size() > rank ? launch.parts : launch.batch) =
        numel(product.type.shape) / (launch.m * launch.n);
    if (launch.parts > 1) launch.part_depth = product.attrs.integer(ops::kPartDepth);
    launch.a_by_rows = computes_operand();
    if (launch.a_by_rows) reduce_ = kNoValue;  // it belongs to the operand
    operand(product.inputs[0], launch.a, launch.a_by_rows ? launch.k : 0);
    operand(product.inputs[1], launch.b);
    launch.by_rows = reduces_own();
    if (launch.by_rows) {
      ProgramBuilder body(context_, launch_.body, launch.m, launch.n, true, root_);
      return store_rows(body, launch.m, launch.n);
    }
    ProgramBuilder body(context_, launch_.body, numel(product.type.shape), 1, false, root_);
    for (const ValueId id : members_) {
      if (id == reduce_) {
        // The sum over k of one operand. Sizes and source tell which one.
        const Source summed = through_views(graph_, graph_[id].inputs[0]);
        const Source b = through_views(graph_, product.inputs[1]);
        launch.bias_grad_row = summed.value == b.value && b.map.is_identity() &&
                               numel(graph_[id].type.shape) == launch.n;
        launch.bias_grad_column = !launch.bias_grad_row;
        launch.bias_grad_store = make_store(placement_.places.at(id), DType::kF32, Level::kElement,
                                            launch.bias_grad_row ? launch.n : launch.m, 0, -1);
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

  // True if the launch computes the first operand of its product.
  [[nodiscard]] bool computes_operand() const {
    const Source a = through_views(graph_, graph_[root_].inputs[0]);
    return std::find(members_.begin(), members_.end(), a.value) != members_.end();
  }

  // Lowers an operand. If row_size > 0, as rows of that size.
  void operand(ValueId id, ScalarProgram& program, std::int64_t row_size = 0) {
    const Shape& shape = graph_[id].type.shape;
    const std::int64_t cols = std::max<std::int64_t>(1, row_size);
    ProgramBuilder builder(context_, program, numel(shape) / cols, cols, row_size > 0);
    end_with(program, builder.value(id, IndexMap::identity(shape), Level::kElement));
  }

  // Checks that the value of an operand program is its last instruction.
  static void end_with(ScalarProgram& program, int value) {
    CHECK(value == static_cast<int>(program.instrs.size()) - 1,
          "an operand's value is not made last");
  }

  void lower_scatter() {
    const Node& node = graph_[root_];
    const std::int64_t axis = node.attrs.integer("axis");
    const AxisSplit from = split_at(graph_[node.inputs[0]].type.shape, axis);
    auto& scatter = make<ScatterLaunch>({from.pre, from.size, from.post});
    scatter.size = node.type.shape[static_cast<std::size_t>(axis)];
    operand(node.inputs[0], scatter.source);
    scatter_index(node.inputs[1], scatter.index);
    store_epilogue();
  }

  void lower_scan() {
    const Node& node = graph_[root_];
    const AxisSplit lines = split_at(node.type.shape, node.attrs.integer("axis"));
    auto& scan = make<ScanLaunch>({lines.pre, lines.size, lines.post});
    scan.op = node.op == &ops::cumsum              ? ScanOp::kSum
              : node.op == &ops::cumprod           ? ScanOp::kProduct
              : node.op == &ops::linear_recurrence ? ScanOp::kLinear
              : node.op == &ops::arg_cummax        ? ScanOp::kArgMax
                                                   : ScanOp::kArgMin;
    scan.reverse = node.attrs.integer("reverse") != 0;
    const bool has_a = scan.op == ScanOp::kProduct || scan.op == ScanOp::kLinear;
    if (has_a) operand(node.inputs[0], scan.a);
    if (scan.op != ScanOp::kProduct) operand(node.inputs.back(), scan.b);
    store_epilogue();
  }

  void lower_sort() {
    const Node& node = graph_[root_];
    const AxisSplit lines = split_at(node.type.shape, node.attrs.integer("axis"));
    auto& sort = make<SortLaunch>({lines.pre, lines.size, lines.post});
    sort.descending = node.attrs.integer("descending") != 0;
    operand(node.inputs.back(), sort.keys);
    store_epilogue();
  }

  // Stores the values that follow from each element of the root.
  void store_epilogue() {
    ProgramBuilder body(context_, launch_.body, numel(graph_[root_].type.shape), 1, false, root_);
    for (const ValueId id : members_) store_element(body, id);
  }

  void lower_opaque() {
    const Node& node = graph_[root_];
    auto& opaque = make<OpaqueLaunch>({opaque_kernel(graph_, node)});
    if (!opaque.kernel->label.empty()) launch_.name = opaque.kernel->label;
    for (const OpaqueInput& input : opaque.kernel->inputs) {
      opaque.inputs.emplace_back();
      if (input.absent()) continue;
      operand(node.inputs[static_cast<std::size_t>(input.operand)], opaque.inputs.back());
    }
    for (const ValueId id : members_) store_results(id, opaque.kernel->results);
  }

  // Stores the results of the kernel that an op returns, consecutively in one flat value.
  void store_results(ValueId id, const std::vector<OpaqueResult>& results) {
    if (!placement_.places.contains(id)) return;
    BufferRange place = placement_.places.at(id);
    const int only = graph_[id].op->only_result;
    for (int i = 0; i < static_cast<int>(results.size()); ++i) {
      if (only >= 0 && i != only) continue;
      const std::int64_t size = results[static_cast<std::size_t>(i)].size;
      launch_.stores.push_back(
          make_store(place, graph_[id].type.dtype, Level::kElement, size, i, -1));
      place.offset += size;
    }
  }

  // Converts u32 to i32 bitwise: indices above the i32 range become negative, and both are out of
  // range.
  void scatter_index(ValueId id, ScalarProgram& program) {
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
  const std::int64_t elements = numel(type.shape);
  launch.kind = MapLaunch{elements};
  LaunchContext context{graph, placement, scalars, -1, launch};
  ProgramBuilder body(context, launch.body, elements, 1, false);
  Store store;
  store.value = body.value(value, IndexMap::identity(type.shape), Level::kElement);
  store.binding = context.bind(to.buffer, true);
  store.dtype = placement.stored(type.dtype);
  const std::int64_t bytes = elements * static_cast<std::int64_t>(element_bytes(store.dtype));
  store.map = IndexMap::identity({elements});
  store.map.views[0].offset = to.offset;
  launch.stores.push_back(std::move(store));
  launch.bytes_moved = 2 * bytes;
  return launch;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
