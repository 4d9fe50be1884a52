// SPDX-License-Identifier: MIT
// Compiles a scalar program to a VectorProgram. Uniform values are hoisted, and row values are
// broadcast if elements need them. Stores are executed as early as the loads of the same buffer
// allow. Registers share slots.
#include "backend/cpu/vector_program_build.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string_view>

#include "base/check.h"
#include "kernel/row_plan.h"

namespace tensorgrad::cpu {

VectorProgramBuilder::VectorProgramBuilder(const Prepare& prepare, const VectorProgramSpec& spec,
                                           VectorProgram& vector_program)
    : prepare_(prepare), spec_(spec), vector_program_(vector_program) {
  const std::size_t n = spec.program->instrs.size();
  uniform_.assign(n, false);
  splat_.assign(n, nullptr);
  reg_.assign(n, -1);
}

void VectorProgramBuilder::build() {
  find_uniforms();
  if (spec_.plan == nullptr) find_indices();
  const std::size_t stores = spec_.stores == nullptr ? 0 : spec_.stores->size();
  for (std::size_t s = 0; s < stores; ++s) make_store(static_cast<int>(s));
  if (spec_.plan == nullptr) {
    build_straight();
  } else {
    build_passes();
  }
  allocate_slots();
  count_cost();
}

const Instr& VectorProgramBuilder::instr(int i) const {
  return spec_.program->instrs[static_cast<std::size_t>(i)];
}

VectorProgramBuilder::Form VectorProgramBuilder::form(int i) const {
  if (uniform_[static_cast<std::size_t>(i)]) return Form::kUniform;
  return spec_.leveled && instr(i).level == Level::kRow ? Form::kRow : Form::kElement;
}

int VectorProgramBuilder::new_reg(VectorRegister::Home home) {
  VectorRegister reg;
  reg.home = home;
  vector_program_.regs_.push_back(reg);
  return static_cast<int>(vector_program_.regs_.size()) - 1;
}

// Checks that every offset of the last view, plus `beyond`, is inside the binding.
void VectorProgramBuilder::check_bounds(const IndexMap& map, int binding, DType dtype,
                                        std::int64_t beyond) const {
  const OffsetRange range = offset_range(map.views.back());
  if (range.low > range.high) return;
  const Binding& bound = prepare_.launch.bindings[static_cast<std::size_t>(binding)];
  const std::int64_t high = range.high + beyond;
  const std::int64_t count = bound.bytes / static_cast<std::int64_t>(element_bytes(dtype));
  CHECK(range.low >= 0 && high < count && high < (std::int64_t{1} << 31),
        prepare_.launch.name + ": " + to_string(map) + " leaves its binding");
}

const Walker* VectorProgramBuilder::walker_of(int access) {
  const auto found = access_walkers_.find(access);
  if (found != access_walkers_.end()) return found->second;
  const Access& a = spec_.program->accesses[static_cast<std::size_t>(access)];
  // The access of an in-bounds test does not read, so it is not limited by its binding.
  const auto& instrs = spec_.program->instrs;
  const bool reads = std::none_of(instrs.begin(), instrs.end(), [&](const Instr& in) {
    return in.kind == InstrKind::kInBounds && in.index == access;
  });
  const std::int64_t beyond = a.at_size > 1 ? a.at_stride * (a.at_size - 1) : 0;
  if (reads) check_bounds(a.map, a.binding, a.dtype, beyond);
  const bool swap = spec_.swapped && !(spec_.leveled && a.level == Level::kRow);
  vector_program_.walkers_.push_back(swap ? Walker::swapped(a.map, spec_.rows, spec_.cols)
                                          : Walker(a.map));
  return access_walkers_[access] = &vector_program_.walkers_.back();
}

// Returns a walker whose offsets are the values of a kIndex, a kCoord or a sum of these.
const Walker* VectorProgramBuilder::index_walker(int i, const Instr& in) {
  const bool row = spec_.leveled && in.level == Level::kRow;
  const std::int64_t domain = row ? spec_.rows : spec_.batch * spec_.rows * spec_.cols;
  View view = View::contiguous({domain});
  if (const auto sum = indices_.find(i); sum != indices_.end()) {
    view = sum->second;
  } else if (in.kind == InstrKind::kCoord) {
    const std::int64_t outer = domain / (in.divisor * in.modulus);
    CHECK(outer * in.divisor * in.modulus == domain, prepare_.launch.name + ": odd coordinate");
    view = View{{outer, in.modulus, in.divisor}, {0, 1, 0}, 0, {}, {}};
  }
  vector_program_.walkers_.push_back(spec_.swapped && !row
                                         ? Walker::swapped({{view}}, spec_.rows, spec_.cols, true)
                                         : Walker({{view}}, true));
  return &vector_program_.walkers_.back();
}

// Finds linear combinations of coordinates, such as the position of an element in its window. One
// walk computes the whole sum instead of one operation per term.
void VectorProgramBuilder::find_indices() {
  std::map<int, IndexSum> sums;
  for (int i = 0; i < static_cast<int>(spec_.program->instrs.size()); ++i) {
    const Instr& in = instr(i);
    if (in.dtype != DType::kI32 && in.dtype != DType::kU32) continue;
    if (spec_.leveled && in.level == Level::kRow) continue;
    if (in.kind == InstrKind::kConst) sums[i] = {std::bit_cast<std::int32_t>(in.bits), {}};
    if (in.kind == InstrKind::kCoord) sums[i] = {0, {{in.divisor, in.modulus, 1}}};
    if (in.kind != InstrKind::kOp) continue;
    if (!std::all_of(in.operands.begin(), in.operands.end(), [&](int o) { return sums.count(o); }))
      continue;
    IndexSum sum = sums.at(in.operands[0]);
    const std::string_view name = in.code->name;
    if (name == "add") {
      const IndexSum& other = sums.at(in.operands[1]);
      sum.offset += other.offset;
      sum.terms.insert(sum.terms.end(), other.terms.begin(), other.terms.end());
    } else if (name == "mul") {
      const IndexSum& other = sums.at(in.operands[1]);
      if (!sum.terms.empty() && !other.terms.empty()) continue;
      const std::int64_t factor = sum.terms.empty() ? sum.offset : other.offset;
      if (sum.terms.empty()) sum = other;
      sum.offset *= factor;
      for (IndexSum::Term& term : sum.terms) term.factor *= factor;
    } else if (name != "cast") {
      continue;
    }
    const std::optional<View> view = index_view(sum);
    if (!view) continue;
    sums[i] = std::move(sum);
    if (form(i) == Form::kElement) indices_[i] = *view;
  }
}

// Returns the view whose offsets are the sum. Returns nothing if there is none, if it has too many
// axes, or if a value exceeds 32 bits.
std::optional<View> VectorProgramBuilder::index_view(IndexSum sum) const {
  using Term = IndexSum::Term;
  if (2 * sum.terms.size() + 1 > static_cast<std::size_t>(kMaxRank)) return std::nullopt;
  std::sort(sum.terms.begin(), sum.terms.end(),
            [](const Term& a, const Term& b) { return a.divisor > b.divisor; });
  View view;
  view.offset = sum.offset;
  std::int64_t left = spec_.batch * spec_.rows * spec_.cols, largest = std::abs(sum.offset);
  for (const Term& term : sum.terms) {
    const std::int64_t step = term.divisor * term.modulus;
    largest += std::abs(term.factor) * (term.modulus - 1);
    if (left % step != 0 || largest > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    view.shape.insert(view.shape.end(), {left / step, term.modulus});
    view.strides.insert(view.strides.end(), {0, term.factor});
    left = term.divisor;
  }
  view.shape.push_back(left);
  view.strides.push_back(0);
  return view;
}

// Returns how many consecutive elements of a gather share an index and read contiguous words, such
// as a row of a table.
std::int64_t VectorProgramBuilder::gather_run(const Instr& in) {
  const Instr& index = instr(in.operands[0]);
  if (index.kind != InstrKind::kLoad) return 1;
  const View* still = walker_of(index.index)->view();
  const View* moving = walker_of(in.index)->view();
  for (const View* view : {still, moving}) {
    if (view == nullptr || view->masked() || view->shape.empty()) return 1;
  }
  if (still->strides.back() != 0 || moving->strides.back() != 1) return 1;
  return std::gcd(still->shape.back(), moving->shape.back());
}

void VectorProgramBuilder::find_uniforms() {
  for (std::size_t i = 0; i < spec_.program->instrs.size(); ++i) {
    const Instr& in = spec_.program->instrs[i];
    bool uniform = false;
    switch (in.kind) {
      case InstrKind::kConst:
      case InstrKind::kRuntimeScalar: uniform = true; break;
      case InstrKind::kLoad: uniform = walker_of(in.index)->uniform(); break;
      case InstrKind::kOp:
        uniform = std::all_of(in.operands.begin(), in.operands.end(),
                              [&](int o) { return uniform_[static_cast<std::size_t>(o)]; });
        break;
      default: break;
    }
    uniform_[i] = uniform;
    if (uniform) add_uniform(static_cast<int>(i), in);
  }
}

void VectorProgramBuilder::add_uniform(int i, const Instr& in) {
  const auto at = static_cast<std::size_t>(i);
  if (in.kind == InstrKind::kConst) {
    splat_[at] = prepare_.constants.splat(in.bits);
    return;
  }
  VectorUniform u;
  if (in.kind == InstrKind::kRuntimeScalar) {
    u.runtime_scalars = in.index;
  } else if (in.kind == InstrKind::kLoad) {
    const Access& access = spec_.program->accesses[static_cast<std::size_t>(in.index)];
    const Word* data = prepare_.data[static_cast<std::size_t>(access.binding)];
    const std::int64_t base = walker_of(in.index)->base();
    u.half = access.dtype == DType::kF16;
    u.data = u.half ? reinterpret_cast<const Word*>(reinterpret_cast<const Half*>(data) + base)
                    : data + base;
  } else {
    u.fn = in.code->block(instr(in.operands.back()).dtype, in.dtype);
    CHECK(u.fn != nullptr, prepare_.launch.name + ": no block function for " + in.code->name);
    for (std::size_t k = 0; k < in.operands.size(); ++k) {
      u.operands.data[k] = splat_[static_cast<std::size_t>(in.operands[k])];
      u.operands.mask[k] = 0;
    }
  }
  vector_program_.uniform_memory_.emplace_back(kSplatWords * sizeof(Word));
  u.out = reinterpret_cast<Word*>(vector_program_.uniform_memory_.back().data());
  splat_[at] = u.out;
  vector_program_.uniforms_.push_back(u);
}

void VectorProgramBuilder::make_store(int s) {
  const Store& store = (*spec_.stores)[static_cast<std::size_t>(s)];
  VectorStore out;
  out.row = spec_.leveled && store.level == Level::kRow;
  vector_program_.walkers_.push_back(spec_.swapped && !out.row
                                         ? Walker::swapped(store.map, spec_.rows, spec_.cols)
                                         : Walker(store.map));
  out.walker = &vector_program_.walkers_.back();
  out.data = out.target = prepare_.data[static_cast<std::size_t>(store.binding)];
  out.half = store.dtype == DType::kF16;
  out.count = prepare_.launch.bindings[static_cast<std::size_t>(store.binding)].bytes /
              static_cast<std::int64_t>(element_bytes(store.dtype));
  out.ring_word = store.ring_word;
  if (store.at >= 0) {
    out.at_stride = store.at_stride;
    out.at_size = store.at_size;
  }
  const std::int64_t beyond = store.at_stride * std::max<std::int64_t>(store.at_size - 1, 0);
  check_bounds(store.map, store.binding, store.dtype, beyond);
  out.highest = offset_range(store.map.views.back()).high;
  vector_program_.stores.push_back(out);
}

void VectorProgramBuilder::build_straight() {
  std::set<int> needed;
  std::vector<int> open, store_ids;
  for (std::size_t s = 0; spec_.stores != nullptr && s < vector_program_.stores.size(); ++s) {
    open.push_back((*spec_.stores)[s].value);
    if ((*spec_.stores)[s].at >= 0) open.push_back((*spec_.stores)[s].at);
    store_ids.push_back(static_cast<int>(s));
  }
  if (spec_.result >= 0) open.push_back(spec_.result);
  while (!open.empty()) {
    const int i = open.back();
    open.pop_back();
    if (form(i) == Form::kUniform || !needed.insert(i).second) continue;
    if (indices_.contains(i)) continue;
    open.insert(open.end(), instr(i).operands.begin(), instr(i).operands.end());
  }
  spread_ops_ = &vector_program_.ops;
  for (const int i : needed) emit(i, vector_program_.ops);
  if (spec_.result >= 0)
    vector_program_.result_reg_ = element_operand(spec_.result, vector_program_.ops);
  place_stores(vector_program_.ops, store_ids);
}

void VectorProgramBuilder::build_passes() {
  for (const RowPass& pass : spec_.plan->passes) {
    vector_program_.passes.emplace_back();
    VectorPass& out = vector_program_.passes.back();
    spread_.clear();  // broadcast blocks are valid for one pass
    spread_ops_ = &out.spreads;
    for (const int i : pass.row_before) emit(i, out.before);
    for (const int i : pass.elements) {
      if (form(i) == Form::kElement) reg_[static_cast<std::size_t>(i)] = -1;
    }
    for (const int i : pass.elements) emit(i, out.loop);
    for (const int i : pass.reduces) {
      const int operand = instr(i).operands[0];
      const int dst = reg_[static_cast<std::size_t>(i)] = new_reg(VectorRegister::Home::kRow);
      out.reduces.push_back(
          {instr(i).reduce, instr(operand).dtype, element_operand(operand, out.loop), dst});
    }
    place_stores(out.loop, pass.stores);
  }
  spread_.clear();
  spread_ops_ = &vector_program_.after;
  for (const int i : spec_.plan->row_after) emit(i, vector_program_.after);
  place_stores(vector_program_.after, spec_.plan->row_stores);
}

// Returns the period, a power of two, of a load that repeats a contiguous range of a buffer, such
// as a bias along rows, and that only calls read. Returns 0 for any other load.
std::int64_t VectorProgramBuilder::period(int i) const {
  const Instr& in = instr(i);
  if (in.kind != InstrKind::kLoad || spec_.plan != nullptr || spec_.swapped) return 0;
  if (form(i) != Form::kElement || spec_.result == i) return 0;
  const Access& a = spec_.program->accesses[static_cast<std::size_t>(in.index)];
  if (a.dtype == DType::kF16 || a.map.views.size() != 1) return 0;
  const View view = a.map.views[0].simplified();
  const bool repeats =
      view.shape.size() == 2 && !view.masked() && view.strides[0] == 0 && view.strides[1] == 1;
  if (!repeats || view.shape[1] < kSplatWords || (view.shape[1] & (view.shape[1] - 1)) != 0)
    return 0;
  const auto& bindings = prepare_.launch.bindings;
  if (bindings[static_cast<std::size_t>(a.binding)].mode != BindMode::kRead) return 0;
  for (const Instr& user : spec_.program->instrs) {
    const bool reads = std::count(user.operands.begin(), user.operands.end(), i) > 0;
    if (reads && user.kind != InstrKind::kOp) return 0;
  }
  if (spec_.stores == nullptr) return view.shape[1];
  const bool stored =
      std::any_of(spec_.stores->begin(), spec_.stores->end(),
                  [&](const Store& store) { return store.value == i || store.at == i; });
  return stored ? 0 : view.shape[1];
}

// Returns the operation of an instruction, without operands and destination.
VectorOp VectorProgramBuilder::make_op(int i, const Instr& in) {
  VectorOp op;
  op.row = form(i) == Form::kRow;
  op.dtype = in.dtype;
  const bool access = in.kind == InstrKind::kLoad || in.kind == InstrKind::kLoadAt;
  if (access) {
    const Access& a = spec_.program->accesses[static_cast<std::size_t>(in.index)];
    op.data = prepare_.data[static_cast<std::size_t>(a.binding)];
    op.half = a.dtype == DType::kF16;
    op.at_stride = a.at_stride;
    op.at_size = a.at_size;
    op.read_only =
        prepare_.launch.bindings[static_cast<std::size_t>(a.binding)].mode == BindMode::kRead;
  }
  if (indices_.contains(i)) {
    op.walker = index_walker(i, in);
    op.kind = VectorOp::Kind::kOffsets;
    return op;
  }
  switch (in.kind) {
    case InstrKind::kLoad:
      op.walker = walker_of(in.index);
      if (const std::int64_t repeated = period(i); repeated > 0) {
        op.kind = VectorOp::Kind::kPeriod;
        op.data += spec_.program->accesses[static_cast<std::size_t>(in.index)].map.views[0].offset;
        op.run = repeated;
        break;
      }
      // If passes are divided into chunks, row values outlive the frame that computed them.
      op.kind = op.walker->contiguous() && !op.half && !(op.row && spec_.plan != nullptr)
                    ? VectorOp::Kind::kBorrow
                    : VectorOp::Kind::kLoad;
      break;
    case InstrKind::kLoadAt:
      op.walker = walker_of(in.index);
      op.kind = VectorOp::Kind::kLoadAt;
      op.run = gather_run(in);
      break;
    case InstrKind::kInBounds:
      op.walker = walker_of(in.index);
      op.kind = VectorOp::Kind::kValid;
      break;
    case InstrKind::kIndex:
    case InstrKind::kCoord:
      op.walker = index_walker(i, in);
      op.kind = VectorOp::Kind::kOffsets;
      break;
    case InstrKind::kOp:
      op.kind = VectorOp::Kind::kCall;
      std::fill_n(op.mask, 4, CpuOperands::kEach);
      op.fn = in.code->block(instr(in.operands.back()).dtype, in.dtype);
      CHECK(op.fn != nullptr, prepare_.launch.name + ": no block function for " + in.code->name);
      break;
    case InstrKind::kReduce:
      op.kind = VectorOp::Kind::kReduce;
      op.reduce = in.reduce;
      op.dtype = instr(in.operands[0]).dtype;
      break;
    default: UNREACHABLE(prepare_.launch.name);
  }
  return op;
}

void VectorProgramBuilder::set_operands(const Instr& in, VectorOp& op, VectorOps& ops) {
  for (std::size_t k = 0; k < in.operands.size(); ++k) {
    const int o = in.operands[k];
    const Form f = form(o);
    if (f == Form::kUniform && op.kind == VectorOp::Kind::kCall) {
      const Word* shared = splat_[static_cast<std::size_t>(o)];
      const auto [found, fresh] = shared_regs_.try_emplace(shared, -1);
      if (fresh) {
        found->second = new_reg(VectorRegister::Home::kShared);
        vector_program_.regs_.back().shared = shared;
      }
      op.src[k] = found->second;
      op.mask[k] = 0;
    } else if (op.row && op.kind != VectorOp::Kind::kReduce) {
      CHECK(f != Form::kElement, prepare_.launch.name + ": a row value reads an element");
      if (f == Form::kRow) {
        op.src[k] = reg_[static_cast<std::size_t>(o)];
        continue;
      }
      VectorOp fill;  // uniform index of a row-level gather
      fill.kind = VectorOp::Kind::kFill;
      fill.row = true;
      fill.data = splat_[static_cast<std::size_t>(o)];
      fill.dst = op.src[k] = new_reg(VectorRegister::Home::kRow);
      ops.push_back(fill);
    } else {
      op.src[k] = element_operand(o, ops);
      const auto repeated = periods_.find(op.src[k]);
      if (repeated == periods_.end()) continue;
      CHECK(op.kind == VectorOp::Kind::kCall, prepare_.launch.name);
      op.mask[k] = static_cast<std::size_t>(repeated->second - 1);
    }
  }
}

void VectorProgramBuilder::emit(int i, VectorOps& ops) {
  const Instr& in = instr(i);
  if (form(i) == Form::kUniform || reg_[static_cast<std::size_t>(i)] >= 0) return;
  int& reg = reg_[static_cast<std::size_t>(i)];
  if (in.kind == InstrKind::kAcc) {
    if (vector_program_.acc_reg_ < 0)
      vector_program_.acc_reg_ = new_reg(VectorRegister::Home::kAcc);
    reg = vector_program_.acc_reg_;
    return;
  }
  VectorOp op = make_op(i, in);
  if (!indices_.contains(i)) set_operands(in, op, ops);
  op.dst = reg = new_reg(op.row ? VectorRegister::Home::kRow : VectorRegister::Home::kElement);
  if (op.kind == VectorOp::Kind::kPeriod) periods_[reg] = op.run;
  if (op.kind == VectorOp::Kind::kBorrow) {
    borrowed_[reg] = spec_.program->accesses[static_cast<std::size_t>(in.index)].binding;
  }
  ops.push_back(op);
}

// Returns the element register of a value. Row and uniform values are broadcast into one.
int VectorProgramBuilder::element_operand(int i, VectorOps& ops) {
  const Form f = form(i);
  if (f == Form::kElement) return reg_[static_cast<std::size_t>(i)];
  const auto found = spread_.find(i);
  if (found != spread_.end()) return found->second;
  VectorOp op;
  if (f == Form::kRow) {
    op.kind = VectorOp::Kind::kSpread;
    op.src[0] = reg_[static_cast<std::size_t>(i)];
  } else {
    op.kind = VectorOp::Kind::kFill;
    op.data = splat_[static_cast<std::size_t>(i)];
  }
  op.dst = new_reg(VectorRegister::Home::kElement);
  // In a pass, values are broadcast once, before the loop over its blocks.
  (spec_.plan != nullptr ? *spread_ops_ : ops).push_back(op);
  return spread_[i] = op.dst;
}

// True if no operation from `at` on reads the binding, directly or through a borrowed register.
bool VectorProgramBuilder::safe_after(const VectorOps& ops, std::size_t at, int binding) const {
  const Word* data = prepare_.data[static_cast<std::size_t>(binding)];
  for (std::size_t i = at; i < ops.size(); ++i) {
    if (ops[i].data == data && !ops[i].read_only) return false;
    for (const int src : ops[i].src) {
      const auto found = borrowed_.find(src);
      if (found != borrowed_.end() && found->second == binding) return false;
    }
  }
  return true;
}

// Adds the stores to the list that computes their values. If no later operation reads the buffer, a
// store follows the operation that computes its value, or that operation writes to the buffer
// directly. Otherwise the store goes to the end of the list.
void VectorProgramBuilder::place_stores(VectorOps& ops, const std::vector<int>& stores) {
  VectorOps last;
  for (const int s : stores) {
    CHECK(spec_.stores != nullptr, prepare_.launch.name);
    const Store& spec = (*spec_.stores)[static_cast<std::size_t>(s)];
    VectorStore& store = vector_program_.stores[static_cast<std::size_t>(s)];
    const auto value = static_cast<std::size_t>(spec.value);
    VectorOp op;
    op.kind = VectorOp::Kind::kStore;
    op.store = s;
    op.row = store.row;
    if (!store.row) {
      store.reg = element_operand(spec.value, ops);
    } else if (form(spec.value) == Form::kUniform) {
      VectorOp fill;
      fill.kind = VectorOp::Kind::kFill;
      fill.row = true;
      fill.data = splat_[value];
      fill.dst = store.reg = new_reg(VectorRegister::Home::kRow);
      ops.push_back(fill);
    } else {
      store.reg = reg_[value];
    }
    op.src[0] = store.reg;
    if (spec.at >= 0) {
      op.src[1] = store.at_reg = element_operand(spec.at, ops);
      last.push_back(op);
      continue;
    }
    const auto maker = std::find_if(ops.begin(), ops.end(), [&](const VectorOp& o) {
      return o.kind != VectorOp::Kind::kStore && o.dst == store.reg;
    });
    const auto behind = static_cast<std::size_t>(maker - ops.begin()) + 1;
    if (maker == ops.end() || !safe_after(ops, behind, spec.binding)) {
      last.push_back(op);
    } else if (maker->store < 0 && maker->kind != VectorOp::Kind::kBorrow &&
               store.walker->contiguous() && !store.half) {
      maker->store = s;
    } else {
      ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(behind), op);
    }
  }
  ops.insert(ops.end(), last.begin(), last.end());
}

// Assigns the same slot to element registers with disjoint lifetimes. A value that a loop reads but
// does not compute lives until the end of the loop. Each row register has its own slot.
void VectorProgramBuilder::allocate_slots() {
  std::vector<const VectorOp*> flat;
  std::vector<std::size_t> loop_end;  // per operation: last use of its operands
  const auto append = [&](const VectorOps& ops, bool loop) {
    for (const VectorOp& op : ops) flat.push_back(&op);
    for (std::size_t i = loop_end.size(); i < flat.size(); ++i) {
      loop_end.push_back(loop ? flat.size() : i);
    }
  };
  std::vector<std::size_t> last(vector_program_.regs_.size(), 0),
      made(vector_program_.regs_.size(), 0);
  append(vector_program_.ops, false);
  for (VectorPass& pass : vector_program_.passes) {
    append(pass.before, false);
    append(pass.spreads, false);
    append(pass.loop, true);
    for (const VectorReduce& r : pass.reduces) last[static_cast<std::size_t>(r.src)] = flat.size();
  }
  append(vector_program_.after, false);
  for (std::size_t i = 0; i < flat.size(); ++i) {
    if (flat[i]->dst >= 0) made[static_cast<std::size_t>(flat[i]->dst)] = i;
    for (const int src : flat[i]->src) {
      if (src < 0) continue;
      const auto r = static_cast<std::size_t>(src);
      const bool inside = loop_end[made[r]] == loop_end[i];
      last[r] = std::max(last[r], inside ? i : loop_end[i]);
      // A call that reads a repeated operand must not overwrite it.
      if (periods_.contains(src)) last[r] = std::max(last[r], i + 1);
    }
  }
  if (vector_program_.result_reg_ >= 0)
    last[static_cast<std::size_t>(vector_program_.result_reg_)] = flat.size();

  std::vector<std::int64_t> free_slots;
  std::multimap<std::size_t, std::int64_t> ends;  // when a slot becomes free
  for (std::size_t i = 0; i < flat.size(); ++i) {
    if (flat[i]->dst < 0) continue;
    const auto r = static_cast<std::size_t>(flat[i]->dst);
    VectorRegister& reg = vector_program_.regs_[r];
    if (reg.home == VectorRegister::Home::kRow) reg.offset = vector_program_.row_slots_++;
    if (reg.home != VectorRegister::Home::kElement) continue;
    // An element-wise call may overwrite an operand that it is the last to read.
    const bool in_place = flat[i]->kind == VectorOp::Kind::kCall && flat[i]->store < 0;
    while (!ends.empty() && ends.begin()->first < i + (in_place ? 1 : 0)) {
      free_slots.push_back(ends.begin()->second);
      ends.erase(ends.begin());
    }
    if (free_slots.empty()) free_slots.push_back(vector_program_.element_slots_++);
    reg.offset = free_slots.back();
    free_slots.pop_back();
    ends.emplace(std::max(last[r], i), reg.offset);
  }
  for (const VectorPass& pass : vector_program_.passes) {
    for (const VectorReduce& r : pass.reduces) {
      vector_program_.regs_[static_cast<std::size_t>(r.dst)].offset = vector_program_.row_slots_++;
    }
  }
}

void VectorProgramBuilder::count_cost() {
  const auto add = [&](const VectorOps& ops) {
    for (const VectorOp& op : ops) {
      if (op.row) continue;
      switch (op.kind) {
        case VectorOp::Kind::kCall: vector_program_.cost_ += 0.25; break;
        case VectorOp::Kind::kLoad: vector_program_.cost_ += 0.6; break;
        case VectorOp::Kind::kLoadAt: vector_program_.cost_ += 1.5; break;
        case VectorOp::Kind::kStore: vector_program_.cost_ += 0.3; break;
        default: vector_program_.cost_ += 0.15; break;
      }
    }
  };
  add(vector_program_.ops);
  for (const VectorPass& pass : vector_program_.passes) {
    add(pass.loop);
    vector_program_.cost_ += 0.1 * static_cast<double>(pass.reduces.size());
  }
  vector_program_.cost_ = std::max(vector_program_.cost_, 0.1);
}

}  // namespace tensorgrad::cpu
