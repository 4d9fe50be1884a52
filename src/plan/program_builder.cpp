// SPDX-License-Identifier: MIT
// Lowers graph nodes to scalar instructions. Index maps are propagated from a value to its
// operands: a view changes the map, a load uses it.
#include "plan/program_builder.h"

#include <bit>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "base/visits.h"
#include "ir/sources.h"
#include "ops/pointwise.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns the map from the row number if `map` (over rows*cols elements) does not depend on the
// column.
std::optional<IndexMap> row_part(const IndexMap& map, std::int64_t cols) {
  if (map.views.size() != 1) return std::nullopt;
  View view = map.views[0].simplified();
  std::int64_t left = cols;
  while (left > 1) {
    if (view.shape.empty()) return std::nullopt;
    const std::size_t last = view.shape.size() - 1;
    const bool masked = view.masked() && (view.lo[last] > 0 || view.hi[last] < view.shape[last]);
    if (view.strides[last] != 0 || masked) return std::nullopt;
    const std::int64_t size = view.shape[last];
    if (size % left == 0) {
      view.shape[last] = size / left;
      if (view.masked()) view.hi[last] = size / left;
      left = 1;
    } else if (left % size == 0) {
      left /= size;
      view.shape.pop_back();
      view.strides.pop_back();
      if (view.masked()) {
        view.lo.pop_back();
        view.hi.pop_back();
      }
    } else {
      return std::nullopt;
    }
  }
  return IndexMap{{view}};
}

// Returns an equivalent map that does not depend on the shapes of the original views.
IndexMap simplified(IndexMap map) {
  for (View& view : map.views) view = view.simplified();
  return map;
}

std::uint32_t bits_of(double value, DType dtype) {
  switch (dtype) {
    case DType::kF32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::kI32: return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    case DType::kU32: return static_cast<std::uint32_t>(value);
    case DType::kBool: return value != 0 ? 1 : 0;
    case DType::kF16: break;  // programs compute f16 values in f32
  }
  UNREACHABLE();
}

}  // namespace

int LaunchContext::bind(int buffer, bool write) {
  for (std::size_t i = 0; i < launch.bindings.size(); ++i) {
    Binding& binding = launch.bindings[i];
    if (binding.buffer != buffer) continue;
    const bool same = (binding.mode == BindMode::kRead) == !write;
    if (!same) binding.mode = BindMode::kReadWrite;
    return static_cast<int>(i);
  }
  const std::int64_t bytes = placement.buffers[static_cast<size_t>(buffer)].bytes;
  launch.bindings.push_back({buffer, 0, bytes, write ? BindMode::kWrite : BindMode::kRead});
  return static_cast<int>(launch.bindings.size()) - 1;
}

bool ProgramBuilder::is_stored(ValueId id) const {
  if (!ctx_.placement.places.contains(id)) return false;
  const int group = ctx_.graph[id].group;
  return group < 0 || group != ctx_.group;
}

int ProgramBuilder::push(Instr instr) {
  program_.instrs.push_back(std::move(instr));
  return static_cast<int>(program_.instrs.size()) - 1;
}

int ProgramBuilder::constant(std::uint32_t bits, DType dtype) {
  Instr instr{.kind = InstrKind::kConst,
              .dtype = register_dtype(dtype),
              .level = has_rows_ ? Level::kRow : Level::kElement};
  instr.bits = bits;
  return push(std::move(instr));
}

int ProgramBuilder::integer(std::int64_t value) {
  return constant(static_cast<std::uint32_t>(static_cast<std::int32_t>(value)), DType::kI32);
}

int ProgramBuilder::coordinate(const Shape& shape, std::size_t axis) {
  Instr instr{.kind = InstrKind::kCoord, .dtype = DType::kU32};
  instr.divisor = View::contiguous(shape).strides[axis];
  instr.modulus = shape[axis];
  return op(ops::cast, {push(std::move(instr))}, DType::kI32);
}

int ProgramBuilder::op(const OpDef& def, std::vector<int> operands, DType dtype) {
  Instr instr{.kind = InstrKind::kOp,
              .dtype = register_dtype(dtype),
              .level = has_rows_ ? Level::kRow : Level::kElement};
  for (const int operand : operands) {
    if (program_.instrs[static_cast<size_t>(operand)].level == Level::kElement)
      instr.level = Level::kElement;
  }
  instr.code = def.code;
  instr.operands = std::move(operands);
  return push(std::move(instr));
}

int ProgramBuilder::add_access(const BufferRange& place, DType dtype, const IndexMap& map,
                               Level level) {
  Access access;
  access.binding = ctx_.bind(place.buffer, false);
  access.dtype = ctx_.placement.stored(dtype);
  access.level = level;
  access.map = map;
  access.map.views.back().offset += place.offset;
  program_.accesses.push_back(std::move(access));
  return static_cast<int>(program_.accesses.size()) - 1;
}

int ProgramBuilder::load(ValueId id, const IndexMap& map, Level level) {
  const DType dtype = ctx_.graph[id].type.dtype;
  Instr instr{.kind = InstrKind::kLoad, .dtype = register_dtype(dtype), .level = level};
  instr.index = add_access(ctx_.placement.places.at(id), dtype, map, level);
  return push(std::move(instr));
}

// An in-bounds test reads nothing. It names a binding only because every access has one.
int ProgramBuilder::in_bounds(const IndexMap& map, Level level) {
  Instr instr{.kind = InstrKind::kInBounds, .dtype = DType::kBool, .level = level};
  Access access;
  access.binding = 0;
  access.level = level;
  access.map = map;
  program_.accesses.push_back(std::move(access));
  instr.index = static_cast<int>(program_.accesses.size()) - 1;
  return push(std::move(instr));
}

bool ProgramBuilder::is_source(ValueId id) const {
  const Node& node = ctx_.graph[id];
  return node.op == &ops::constant || node.op == &ops::scalar || id == accumulated_ ||
         is_stored(id) || node.op->kind == OpKind::kGenerator;
}

// Reads values that are constant along a row at row level.
ProgramBuilder::Key ProgramBuilder::key_of(Read& read) const {
  if (read.level == Level::kElement && has_rows_) {
    if (std::optional<IndexMap> rows = row_part(read.map, cols_)) {
      read.map = std::move(*rows);
      read.level = Level::kRow;
    }
  }
  return {read.id, read.level, to_string(simplified(read.map))};
}

int ProgramBuilder::value(ValueId id, const IndexMap& map, Level level) {
  std::vector<Pending> stack;
  int result = -1;
  // Sets `result` if the value is known; otherwise pushes it onto the stack.
  const auto find = [&](Read read) {
    visit();
    Key key = key_of(read);
    const auto known = made_.find(key);
    if (known != made_.end()) {
      result = known->second;
      return true;
    }
    std::vector<Read> reads = reads_of(read);
    stack.push_back({std::move(key), std::move(read), std::move(reads), {}, -1});
    return false;
  };
  if (find({id, map, level})) return result;
  while (!stack.empty()) {
    Pending& top = stack.back();
    if (top.values.size() < top.reads.size()) {
      const Read next = top.reads[top.values.size()];  // a copy, since `top` may move
      if (find(next)) take(top, result);
      continue;
    }
    result = make(top);
    made_.emplace(std::move(top.key), result);
    stack.pop_back();
    if (!stack.empty()) take(stack.back(), result);
  }
  return result;
}

// Returns the operands in the order in which their instructions are emitted.
std::vector<ProgramBuilder::Read> ProgramBuilder::reads_of(const Read& wanted) const {
  if (is_source(wanted.id)) return {};
  const Node& node = ctx_.graph[wanted.id];
  switch (node.op->kind) {
    case OpKind::kView: return {read_view(wanted)};
    case OpKind::kGather: return {{node.inputs[1], wanted.map, wanted.level}};
    case OpKind::kConcat: return read_parts(wanted);
    case OpKind::kReduce: return {read_reduced(wanted)};
    case OpKind::kPointwise: break;
    default: UNREACHABLE(std::string(node.op->name) + " has no place and is not computed here");
  }
  std::vector<Read> reads;
  for (const ValueId input : node.inputs) reads.push_back({input, wanted.map, wanted.level});
  return reads;
}

// Adds the value of an operand. Parts of a concat are selected one by one, from the last to the
// first.
void ProgramBuilder::take(Pending& pending, int value) {
  const Read& read = pending.reads[pending.values.size()];
  pending.values.push_back(value);
  const Node& node = ctx_.graph[pending.wanted.id];
  if (node.op->kind != OpKind::kConcat) return;
  pending.result = pending.result < 0
                       ? value
                       : op(ops::where, {in_bounds(read.map, read.level), value, pending.result},
                            node.type.dtype);
}

int ProgramBuilder::make(const Pending& pending) {
  const auto& [id, map, level] = pending.wanted;
  const Node& node = ctx_.graph[id];
  if (node.op == &ops::constant) {
    const DType dtype = register_dtype(node.type.dtype);
    return constant(bits_of(node.attrs.number("value"), dtype), dtype);
  }
  if (node.op == &ops::scalar) {
    Instr instr{.kind = InstrKind::kRuntimeScalar,
                .dtype = node.type.dtype,
                .level = has_rows_ ? Level::kRow : Level::kElement};
    instr.index = ctx_.scalars.at(node.attrs.text("name"));
    return push(std::move(instr));
  }
  if (id == accumulated_) {
    CHECK(map.is_identity(), "a product is read out of its order in its own launch");
    return push({.kind = InstrKind::kAcc, .dtype = node.type.dtype});
  }
  if (is_stored(id)) return load(id, map, level);
  switch (node.op->kind) {
    case OpKind::kView: return make_view(pending);
    case OpKind::kGenerator: return make_iota(node, map, level);
    case OpKind::kGather: return make_gather(pending);
    case OpKind::kConcat: return pending.result;
    case OpKind::kReduce: return make_reduce(node, pending.values[0]);
    default: break;
  }
  if (node.op == &ops::cast) return make_cast(node, pending.values[0]);
  return op(*node.op, pending.values, node.type.dtype);
}

// f16 values are computed in f32: a cast to f16 rounds, a cast from f16 does nothing.
int ProgramBuilder::make_cast(const Node& node, int operand) {
  const DType from = ctx_.graph[node.inputs[0]].type.dtype, to = node.type.dtype;
  int result = operand;
  if (register_dtype(from) != register_dtype(to)) {
    result = op(ops::cast, {result}, register_dtype(to));
  }
  if (to == DType::kF16 && from != to) result = op(ops::round_to_f16, {result}, DType::kF32);
  return result;
}

ProgramBuilder::Read ProgramBuilder::read_view(const Read& wanted) const {
  const Node& node = ctx_.graph[wanted.id];
  const ValueId input = node.inputs[0];
  const View view = node.op->view(ctx_.graph[input].type, node.attrs);
  return {input, compose(wanted.map, view), wanted.level};
}

int ProgramBuilder::make_view(const Pending& pending) {
  const Node& node = ctx_.graph[pending.wanted.id];
  const ValueId input = node.inputs[0];
  const int inner = pending.values[0];
  // A load returns zero out of bounds, a computed value must be masked.
  const View view = node.op->view(ctx_.graph[input].type, node.attrs);
  if (!view.masked() || is_stored(through_views(ctx_.graph, input).value)) return inner;
  const Read& read = pending.reads[0];
  const int inside = in_bounds(read.map, read.level);
  return op(ops::where, {inside, inner, constant(0, node.type.dtype)}, node.type.dtype);
}

// Computes the coordinate on the iota's axis: of the first view by kCoord, of further views by
// arithmetic.
int ProgramBuilder::make_iota(const Node& node, const IndexMap& map, Level level) {
  View along = View::contiguous(node.type.shape);
  const auto axis = static_cast<size_t>(node.attrs.integer("axis"));
  for (std::size_t d = 0; d < along.strides.size(); ++d) along.strides[d] = d == axis ? 1 : 0;
  const IndexMap to_axis = compose(map, along);
  int linear = -1;
  for (const View& view : to_axis.views) {
    int total = view.offset == 0 ? -1 : integer(view.offset);
    std::int64_t pitch = 1;
    for (std::size_t d = view.shape.size(); d-- > 0; pitch *= view.shape[d]) {
      if (view.strides[d] == 0 || view.shape[d] == 1) continue;
      int coordinate = -1;
      if (linear < 0) {
        Instr instr{.kind = InstrKind::kCoord, .dtype = DType::kU32, .level = level};
        instr.divisor = pitch;
        instr.modulus = view.shape[d];
        coordinate = op(ops::cast, {push(std::move(instr))}, DType::kI32);
      } else {
        coordinate =
            op(ops::fmod,
               {op(ops::div, {linear, integer(pitch)}, DType::kI32), integer(view.shape[d])},
               DType::kI32);
      }
      const int step = view.strides[d] == 1
                           ? coordinate
                           : op(ops::mul, {coordinate, integer(view.strides[d])}, DType::kI32);
      total = total < 0 ? step : op(ops::add, {total, step}, DType::kI32);
    }
    linear = total < 0 ? integer(0) : total;
  }
  return node.type.dtype == DType::kI32 ? linear : op(ops::cast, {linear}, node.type.dtype);
}

// out[p, i, q] = x[p, index[p, i, q], q]
int ProgramBuilder::make_gather(const Pending& pending) {
  const auto& [id, map, level] = pending.wanted;
  const Node& node = ctx_.graph[id];
  const Source data = through_views(ctx_.graph, node.inputs[0]);
  CHECK(data.map.is_identity() && is_stored(data.value), "gather's data does not lie in memory");
  const Type& type = ctx_.graph[node.inputs[0]].type;
  const auto axis = static_cast<size_t>(node.attrs.integer("axis"));
  View base = View::contiguous(type.shape);
  const std::int64_t pitch = base.strides[axis];
  base.shape = node.type.shape;
  base.strides[axis] = 0;
  Instr instr{.kind = InstrKind::kLoadAt, .dtype = register_dtype(type.dtype), .level = level};
  instr.operands = {pending.values[0]};
  instr.index =
      add_access(ctx_.placement.places.at(data.value), type.dtype, compose(map, base), level);
  Access& access = program_.accesses.back();
  access.at_stride = pitch;
  access.at_size = type.shape[axis];
  return push(std::move(instr));
}

// Returns the parts from the last to the first, since each is selected over those after it.
std::vector<ProgramBuilder::Read> ProgramBuilder::read_parts(const Read& wanted) const {
  const Node& node = ctx_.graph[wanted.id];
  const auto axis = static_cast<size_t>(node.attrs.integer("axis"));
  std::vector<Read> reads;
  std::int64_t start = node.type.shape[axis];
  for (std::size_t i = node.inputs.size(); i-- > 0;) {
    const Shape& shape = ctx_.graph[node.inputs[i]].type.shape;
    start -= shape[axis];
    View part = View::contiguous(shape);
    part.offset = -start * part.strides[axis];
    part.lo.assign(shape.size(), 0);
    part.hi = shape;
    part.lo[axis] = start;
    part.hi[axis] = start + shape[axis];
    part.shape = node.type.shape;
    reads.push_back({node.inputs[i], compose(wanted.map, part), wanted.level});
  }
  return reads;
}

ProgramBuilder::Read ProgramBuilder::read_reduced(const Read& wanted) const {
  const Node& node = ctx_.graph[wanted.id];
  CHECK(has_rows_ && wanted.level == Level::kRow && wanted.map.is_identity(),
        std::string(node.op->name) + " is read out of its order in its own launch");
  const ReduceShape shape = reduce_shape(ctx_.graph, node);
  CHECK(shape.rows == rows_ && shape.cols == cols_, node.op->name);
  IndexMap order = shape.trailing ? IndexMap::identity({rows_ * cols_}) : IndexMap{{shape.order}};
  return {node.inputs[0], std::move(order), Level::kElement};
}

int ProgramBuilder::make_reduce(const Node& node, int operand) {
  Instr instr{.kind = InstrKind::kReduce, .dtype = node.type.dtype, .level = Level::kRow};
  instr.reduce = node.op == &ops::reduce_sum   ? ReduceOp::kSum
                 : node.op == &ops::reduce_max ? ReduceOp::kMax
                 : node.op == &ops::reduce_min ? ReduceOp::kMin
                 : node.op == &ops::argmax     ? ReduceOp::kArgMax
                                               : ReduceOp::kArgMin;
  instr.operands = {operand};
  return push(std::move(instr));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
