// SPDX-License-Identifier: MIT
// Programs: the passes of row launches, the checks of verify(), and the launch table as text.
#include "kernel/program.h"
#include "kernel/row_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>

#include "base/check.h"
#include "base/overloaded.h"
#include "base/text.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns for each instruction the largest number of reductions on a path to it, counting itself.
std::vector<int> depths(const ScalarProgram& body) {
  std::vector<int> depth(body.instrs.size(), 0);
  for (std::size_t i = 0; i < body.instrs.size(); ++i) {
    for (const int operand : body.instrs[i].operands) {
      depth[i] = std::max(depth[i], depth[static_cast<size_t>(operand)]);
    }
    if (body.instrs[i].kind == InstrKind::kReduce) ++depth[i];
  }
  return depth;
}

void mark_needed(const ScalarProgram& body, int value, Level level, std::set<int>& needed) {
  std::vector<int> open{value};
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    const Instr& instr = body.instrs[static_cast<size_t>(at)];
    if (instr.level != level || !needed.insert(at).second) continue;
    if (instr.kind == InstrKind::kReduce) continue;
    open.insert(open.end(), instr.operands.begin(), instr.operands.end());
  }
}

}  // namespace

RowPlan plan_rows(const Launch& launch) {
  const ScalarProgram& body = launch.body;
  const std::vector<int> depth = depths(body);
  const int deepest = depth.empty() ? 0 : *std::max_element(depth.begin(), depth.end());
  RowPlan plan;
  for (int pass = 0; pass <= deepest; ++pass) {
    RowPass row_pass;
    std::set<int> elements;
    for (int i = 0; i < static_cast<int>(body.instrs.size()); ++i) {
      const Instr& instr = body.instrs[static_cast<size_t>(i)];
      if (instr.level == Level::kRow && instr.kind != InstrKind::kReduce &&
          depth[static_cast<size_t>(i)] == pass) {
        row_pass.row_before.push_back(i);
      }
      if (instr.kind == InstrKind::kReduce && depth[static_cast<size_t>(i)] == pass + 1) {
        row_pass.reduces.push_back(i);
        mark_needed(body, instr.operands[0], Level::kElement, elements);
      }
    }
    if (pass == deepest) {
      for (int s = 0; s < static_cast<int>(launch.stores.size()); ++s) {
        const Store& store = launch.stores[static_cast<size_t>(s)];
        if (store.level != Level::kElement) continue;
        row_pass.stores.push_back(s);
        mark_needed(body, store.value, Level::kElement, elements);
      }
    }
    row_pass.elements.assign(elements.begin(), elements.end());
    plan.passes.push_back(std::move(row_pass));
  }
  for (int s = 0; s < static_cast<int>(launch.stores.size()); ++s) {
    if (launch.stores[static_cast<size_t>(s)].level == Level::kRow) plan.row_stores.push_back(s);
  }
  RowPass& last = plan.passes.back();
  if (plan.passes.size() > 1 && last.elements.empty() && last.stores.empty()) {
    plan.row_after = std::move(last.row_before);  // needs no loop
    plan.passes.pop_back();
  }
  return plan;
}

namespace {

// Returns all rows of a launch.
Window whole_window(const Launch& launch) {
  Window all;
  const auto set = [&](std::int64_t outer, std::int64_t pitch, std::int64_t columns) {
    all.outer_count = outer;
    all.count = all.pitch = pitch;
    all.columns = columns;
  };
  std::visit(
      Overloaded{
          [&](const MapLaunch& map) { set(1, map.rows, 1); },
          [&](const RowLaunch& row) { set(1, row.rows, row.cols); },
          [&](const ContractionLaunch& p) { set(p.batch * p.parts, p.m, p.n); },
          [&](const ScatterLaunch& scatter) { set(scatter.pre, scatter.size, scatter.post); },
          [&](const ScanLaunch& scan) { set(1, scan.pre, scan.count * scan.post); },
          [&](const SortLaunch& sort) { set(1, sort.pre, sort.count * sort.post); },
          [&](const OpaqueLaunch& opaque) { set(1, opaque.kernel->rows, 1); },
      },
      launch.kind);
  return all;
}

// The type of a member of L, which may be const.
template <class L, class T>
using MemberOf = std::conditional_t<std::is_const_v<L>, const T, T>;

template <class L>
std::vector<MemberOf<L, ScalarProgram>*> list_programs(L& launch) {
  std::vector<MemberOf<L, ScalarProgram>*> programs = {&launch.body};
  const auto add = [&](auto&... more) { (programs.push_back(&more), ...); };
  std::visit(Overloaded{
                 [](MemberOf<L, MapLaunch>&) {},
                 [](MemberOf<L, RowLaunch>&) {},
                 [&](MemberOf<L, ContractionLaunch>& product) { add(product.a, product.b); },
                 [&](MemberOf<L, ScatterLaunch>& scatter) { add(scatter.index, scatter.source); },
                 [&](MemberOf<L, ScanLaunch>& scan) { add(scan.a, scan.b); },
                 [&](MemberOf<L, SortLaunch>& sort) { add(sort.keys); },
                 [&](MemberOf<L, OpaqueLaunch>& opaque) {
                   for (auto& input : opaque.inputs) add(input);
                 },
             },
             launch.kind);
  return programs;
}

template <class L>
std::vector<MemberOf<L, Store>*> list_stores(L& launch) {
  std::vector<MemberOf<L, Store>*> stores;
  for (auto& store : launch.stores) stores.push_back(&store);
  auto* const product = std::get_if<ContractionLaunch>(&launch.kind);
  if (product != nullptr && product->has_bias_grad()) stores.push_back(&product->bias_grad_store);
  return stores;
}

}  // namespace

Window window_of(const Launch& launch) {
  Window window = whole_window(launch);
  if (launch.row_count == 0) return window;
  window.outer_first = launch.first_row / window.pitch;
  window.first = launch.first_row % window.pitch;
  const bool whole = window.first == 0 && launch.row_count % window.pitch == 0;
  window.outer_count = whole ? launch.row_count / window.pitch : 1;
  if (!whole) window.count = launch.row_count;
  return window;
}

std::vector<ScalarProgram*> programs_of(Launch& launch) { return list_programs(launch); }
std::vector<const ScalarProgram*> programs_of(const Launch& launch) {
  return list_programs(launch);
}

std::vector<Store*> stores_of(Launch& launch) { return list_stores(launch); }
std::vector<const Store*> stores_of(const Launch& launch) { return list_stores(launch); }

// Returns true if the index program loads only through maps with stride 0 along q.
bool index_repeats(const ScatterLaunch& scatter) {
  if (scatter.post == 1) return true;
  const ScalarProgram& program = scatter.index;
  for (const Instr& instr : program.instrs) {
    const bool still = instr.kind == InstrKind::kConst || instr.kind == InstrKind::kRuntimeScalar ||
                       instr.kind == InstrKind::kOp || instr.kind == InstrKind::kLoad ||
                       (instr.kind == InstrKind::kCoord && instr.divisor % scatter.post == 0);
    if (!still) return false;
  }
  const View fence{{scatter.pre * scatter.count, scatter.post}, {1, 1}, 0, {}, {}};
  for (const Access& access : program.accesses) {
    const View& view = access.map.views.front();
    Shape cut;
    View fine;
    if (!common_cut({&view, &fence}, cut) || !recut(view, cut, fine)) return false;
    std::int64_t covered = 1;
    for (std::size_t d = cut.size(); d-- > 0 && covered < scatter.post; covered *= cut[d]) {
      const bool masked = fine.masked() && (fine.lo[d] > 0 || fine.hi[d] < fine.shape[d]);
      if (fine.strides[d] != 0 || masked) return false;
    }
  }
  return true;
}

namespace {

void verify_program(const Launch& launch, const ScalarProgram& program, std::int64_t rows,
                    std::int64_t elements) {
  const std::string& name = launch.name;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    for (const int operand : instr.operands) {
      CHECK(operand >= 0 && operand < static_cast<int>(i), name);
      const Level level = program.instrs[static_cast<size_t>(operand)].level;
      if (instr.level == Level::kRow && instr.kind != InstrKind::kReduce) {
        CHECK(level == Level::kRow, name + ": a row-level instruction reads an element");
      }
    }
    if (instr.kind == InstrKind::kOp) {
      CHECK(
          instr.code != nullptr && instr.operands.size() == static_cast<size_t>(instr.code->arity),
          name);
    }
    if (instr.kind == InstrKind::kLoad || instr.kind == InstrKind::kLoadAt ||
        instr.kind == InstrKind::kInBounds) {
      CHECK(instr.index >= 0 && instr.index < static_cast<int>(program.accesses.size()), name);
    }
    if (instr.kind == InstrKind::kRuntimeScalar)
      CHECK(instr.index >= 0 && instr.index < kMaxRuntimeScalars, name);
  }
  for (const Access& access : program.accesses) {
    CHECK(access.binding >= 0 && access.binding < static_cast<int>(launch.bindings.size()), name);
    const std::int64_t domain = access.level == Level::kRow ? rows : elements;
    CHECK(access.map.domain_size() == domain, name + ": map over " +
                                                  std::to_string(access.map.domain_size()) +
                                                  " elements, domain " + std::to_string(domain));
  }
}

void verify_store(const Launch& launch, const Store& store, std::int64_t rows,
                  std::int64_t elements) {
  CHECK(store.binding >= 0 && store.binding < static_cast<int>(launch.bindings.size()),
        launch.name);
  CHECK(launch.bindings[static_cast<size_t>(store.binding)].mode != BindMode::kRead, launch.name);
  CHECK(store.map.views.size() == 1 && !store.map.masked(), launch.name);
  CHECK(store.map.domain_size() == (store.level == Level::kRow ? rows : elements), launch.name);
  if (store.at < 0) return;
  CHECK(launch.is<MapLaunch>() && store.ring_word < 0, launch.name);
  CHECK(store.at < static_cast<int>(launch.body.instrs.size()), launch.name);
  CHECK(launch.body.instrs[static_cast<size_t>(store.at)].dtype == DType::kI32, launch.name);
  CHECK(launch.bindings[static_cast<size_t>(store.binding)].mode == BindMode::kReadWrite,
        launch.name);
}

// Check what a kind requires of its sizes and programs, other than the body.
void verify_kind(const Launch& /*launch*/, const MapLaunch& /*map*/) {}
void verify_kind(const Launch& /*launch*/, const RowLaunch& /*row*/) {}

void verify_kind(const Launch& launch, const ContractionLaunch& p) {
  const std::string& name = launch.name;
  if (p.parts > 1 || p.by_rows || p.has_bias_grad()) CHECK(p.batch == 1, name);
  CHECK(int{p.parts > 1} + int{p.by_rows} + int{p.bias_grad_row} + int{p.bias_grad_column} <= 1,
        name);
  if (p.parts > 1) CHECK((p.parts - 1) * p.part_depth < p.k && p.k <= p.parts * p.part_depth, name);
  if (p.by_rows) CHECK(p.n <= kMaxRowColumns, name);
  if (p.a_by_rows) {
    CHECK(p.batch == 1 && p.parts == 1 && !p.by_rows && !p.has_bias_grad(), name);
    CHECK(p.m <= kMaxOperandRows && p.m * p.k <= kMaxOperandElements, name);
  }
  verify_program(launch, p.a, p.a_by_rows ? p.m : 1, p.batch * p.m * p.k);
  verify_program(launch, p.b, 1, p.batch * p.k * p.n);
  if (p.has_bias_grad()) verify_store(launch, p.bias_grad_store, 1, p.bias_grad_row ? p.n : p.m);
}

void verify_kind(const Launch& launch, const ScatterLaunch& scatter) {
  const std::int64_t sources = scatter.pre * scatter.count * scatter.post;
  verify_program(launch, scatter.index, 1, sources);
  verify_program(launch, scatter.source, 1, sources);
}

void verify_kind(const Launch& launch, const ScanLaunch& scan) {
  const bool has_a = scan.op == ScanOp::kProduct || scan.op == ScanOp::kLinear;
  const bool has_b = scan.op != ScanOp::kProduct;
  CHECK(scan.a.instrs.empty() != has_a && scan.b.instrs.empty() != has_b, launch.name);
  const std::int64_t elements = scan.pre * scan.count * scan.post;
  verify_program(launch, scan.a, 1, elements);
  verify_program(launch, scan.b, 1, elements);
}

void verify_kind(const Launch& launch, const SortLaunch& sort) {
  CHECK(!sort.keys.instrs.empty(), launch.name);
  verify_program(launch, sort.keys, 1, sort.pre * sort.count * sort.post);
}

void verify_kind(const Launch& launch, const OpaqueLaunch& opaque) {
  CHECK(opaque.kernel != nullptr && launch.body.instrs.empty(), launch.name);
  const OpaqueKernel& kernel = *opaque.kernel;
  CHECK(opaque.inputs.size() == kernel.inputs.size(), launch.name);
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
    const OpaqueInput& input = kernel.inputs[i];
    CHECK(opaque.inputs[i].instrs.empty() == input.absent(), launch.name);
    CHECK(!input.by_row || input.size % kernel.rows == 0, launch.name);
    if (!input.absent()) verify_program(launch, opaque.inputs[i], 1, input.size);
  }
  std::vector<int> stored(kernel.results.size(), 0);
  for (const Store& store : launch.stores) {
    ++stored.at(static_cast<std::size_t>(store.value));
    verify_store(launch, store, 1, kernel.results[static_cast<std::size_t>(store.value)].size);
  }
  for (std::size_t i = 0; i < kernel.results.size(); ++i) {
    const OpaqueResult& result = kernel.results[i];
    CHECK(stored[i] == 1 || (stored[i] == 0 && result.optional), launch.name);
    CHECK(result.size % kernel.rows == 0, launch.name);
  }
}

void verify_launch(const Program& program, const Launch& launch) {
  std::map<int, bool> bound;  // buffer -> true if all its bindings so far are read-only
  for (const Binding& binding : launch.bindings) {
    const bool read = binding.mode == BindMode::kRead;
    const auto [at, fresh] = bound.emplace(binding.buffer, read);
    CHECK(fresh || (at->second && read), launch.name + " binds one buffer twice");
    const BufferDecl& buffer = program.buffers[static_cast<size_t>(binding.buffer)];
    CHECK(binding.offset % 256 == 0 && binding.offset >= 0, launch.name);
    CHECK(binding.offset + binding.bytes <= buffer.bytes, launch.name + ": " + buffer.name);
  }
  std::visit([&](const auto& kind) { verify_kind(launch, kind); }, launch.kind);
  const Window window = window_of(launch), whole = whole_window(launch);
  CHECK(window.first >= 0 && window.count >= 1 && window.end() <= window.pitch, launch.name);
  CHECK(window.outer_first >= 0 && window.outer_first + window.outer_count <= whole.outer_count,
        launch.name);
  if (launch.is<OpaqueLaunch>()) return;
  const auto* product = launch.find<ContractionLaunch>();
  const bool by_rows = launch.is<RowLaunch>() || (product != nullptr && product->by_rows);
  const std::int64_t elements = whole.rows() * whole.columns;
  const std::int64_t rows = by_rows ? whole.rows() : elements;
  verify_program(launch, launch.body, rows, elements);
  for (const Store& store : launch.stores) verify_store(launch, store, rows, elements);
}

}  // namespace

std::string kind_name(const Launch& launch) {
  return std::visit(Overloaded{
                        [](const OpaqueLaunch& opaque) { return opaque.kernel->name; },
                        [](const auto& kind) { return std::string(kind.kName); },
                    },
                    launch.kind);
}

namespace {

std::string whole_domain(const Launch& launch) {
  const auto join = [](std::initializer_list<std::int64_t> sizes) {
    std::string text;
    for (const std::int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
    return text;
  };
  return std::visit(
      Overloaded{
          [&](const MapLaunch& map) { return join({map.rows}); },
          [&](const RowLaunch& row) { return join({row.rows, row.cols}); },
          [&](const ContractionLaunch& p) {
            const std::string mnk = join({p.m, p.n, p.k});
            if (p.parts > 1) return std::to_string(p.parts) + "/" + mnk;
            return p.batch == 1 ? mnk : std::to_string(p.batch) + "*" + mnk;
          },
          [&](const ScatterLaunch& scatter) {
            return join({scatter.pre, scatter.count, scatter.post}) + "->" +
                   std::to_string(scatter.size);
          },
          [&](const ScanLaunch& scan) { return join({scan.pre, scan.count, scan.post}); },
          [&](const SortLaunch& sort) { return join({sort.pre, sort.count, sort.post}); },
          [](const OpaqueLaunch& opaque) { return opaque.kernel->domain; },
      },
      launch.kind);
}

}  // namespace

std::string domain_text(const Launch& launch) {
  if (launch.row_count == 0) return whole_domain(launch);
  return whole_domain(launch) + " rows " + std::to_string(launch.first_row) + " to " +
         std::to_string(launch.first_row + launch.row_count - 1);
}

std::string bound_text(const Program& program, const Binding& binding) {
  const BufferDecl& buffer = program.buffers[static_cast<size_t>(binding.buffer)];
  if (binding.offset == 0 && binding.bytes == buffer.bytes) return buffer.name;
  return buffer.name + " bytes " + std::to_string(binding.offset) + " to " +
         std::to_string(binding.offset + binding.bytes - 1);
}

std::string buffer_name(BufferKind kind, const std::string& name) {
  switch (kind) {
    case BufferKind::kParams: return "params";
    case BufferKind::kGrads: return name.empty() ? "grads" : "grads " + name;
    case BufferKind::kState: return "state " + name;
    case BufferKind::kInput: return "input " + name;
    case BufferKind::kData: return "data " + name;
    case BufferKind::kConstant: return "constant " + name;
    case BufferKind::kOutput: return "output " + name;
    case BufferKind::kSlot: return "slot " + name;
  }
  UNREACHABLE();
}

std::string buffer_text(const BufferDecl& buffer) {
  switch (buffer.kind) {
    case BufferKind::kParams: return "parameters";
    case BufferKind::kGrads: return "gradients";
    case BufferKind::kConstant: return "a constant";
    case BufferKind::kSlot: return "intermediate values";
    default: return buffer.name;
  }
}

namespace {

// Checks what Launch::concurrent requires of two launches, as far as buffers show it.
void verify_concurrent(const Program& program, const Launch& launch, const Launch& other) {
  for (const Binding& mine : launch.bindings) {
    for (const Binding& theirs : other.bindings) {
      if (mine.buffer != theirs.buffer) continue;
      const BufferKind kind = program.buffers[static_cast<size_t>(mine.buffer)].kind;
      const bool read = mine.mode == BindMode::kRead && theirs.mode == BindMode::kRead;
      CHECK(read || kind == BufferKind::kGrads, launch.name + " runs concurrently with " +
                                                    other.name + ", which it shares a buffer with");
    }
  }
}

}  // namespace

std::int64_t count_dispatches(const Program& program) {
  return std::count_if(program.launches.begin(), program.launches.end(), [](const Launch& launch) {
    return !launch.concurrent && !launch.fused_sequence;
  });
}

void verify(const Program& program) {
  for (const BufferDecl& buffer : program.buffers) {
    CHECK(buffer.bytes > 0 && buffer.bytes % 256 == 0, buffer.name);
    CHECK(static_cast<std::int64_t>(buffer.data.size()) * 4 <= buffer.bytes, buffer.name);
  }
  for (const Launch& launch : program.launches) verify_launch(program, launch);
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    if (!launch.fused_sequence) continue;
    CHECK(i > 0 && !launch.concurrent && launch.row_count == 0, launch.name);
    CHECK(launch.blocks > 0 && launch.blocks == program.launches[i - 1].blocks, launch.name);
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    if (!program.launches[i].concurrent) first = i;
    for (std::size_t j = first; j < i; ++j) {
      verify_concurrent(program, program.launches[i], program.launches[j]);
    }
  }
  std::size_t at = 0;
  for (const HostStep& step : program.host_steps) {
    CHECK(step.before >= at && step.before <= program.launches.size(), "host steps are in order");
    at = step.before;
    CHECK(at == program.launches.size() ||
              !(program.launches[at].concurrent || program.launches[at].fused_sequence),
          "a host step lies within concurrent launches");
  }
}

std::string print(const Program& program) {
  TextBuilder out;
  int number = 0;
  auto step = program.host_steps.begin();
  const auto print_steps = [&](std::size_t before) {
    for (; step != program.host_steps.end() && step->before == before; ++step) {
      const std::string& buffer = program.buffers[static_cast<size_t>(step->buffer)].name;
      switch (step->kind) {
        case HostStep::Kind::kGather:
          out << "    host: gather bucket " << step->bucket << " into " << buffer << '\n';
          break;
        case HostStep::Kind::kReduce:
          out << "    host: reduce bucket " << step->bucket << " in " << buffer << '\n';
          break;
        case HostStep::Kind::kSum: out << "    host: sum " << buffer << '\n'; break;
      }
    }
  };
  for (const Launch& launch : program.launches) {
    print_steps(static_cast<size_t>(number));
    out << (number < 10 ? "  " : number < 100 ? " " : "") << number << "  ";
    ++number;
    out << kind_name(launch) << ' ' << launch.name << ' ' << domain_text(launch) << ' '
        << launch.bytes_moved << " B";
    if (launch.flops > 0) out << ' ' << launch.flops << " flop";
    if (launch.concurrent) out << "  concurrent";
    if (launch.fused_sequence) out << "  fused";
    if (!launch.locations.empty()) out << "  at " << to_string(launch.locations.front());
    out << '\n';
    for (const Binding& binding : launch.bindings) {
      const char* mode = binding.mode == BindMode::kRead    ? "read"
                         : binding.mode == BindMode::kWrite ? "write"
                                                            : "read-write";
      out << "       " << mode << ' ' << bound_text(program, binding) << '\n';
    }
  }
  print_steps(program.launches.size());
  for (const BufferDecl& buffer : program.buffers) {
    out << "buffer " << buffer.name << ' ' << buffer.bytes << " B\n";
  }
  out << "peak " << program.peak_bytes << " B\n";
  return out.str();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
