// SPDX-License-Identifier: MIT
// Programs: the passes of row launches, the checks of verify(), and the launch table as text.
#include "kernel/program.h"
#include "kernel/row_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
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
  std::set<int> rows_done;
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

Window window_of(const Launch& launch) {
  Window all;
  switch (launch.kind) {
    case LaunchKind::kMap:
    case LaunchKind::kRow: all.pitch = launch.rows; break;
    case LaunchKind::kContraction:
      all.outer_count = launch.batch * launch.parts;
      all.pitch = launch.m;
      break;
    case LaunchKind::kScatter:
      all.outer_count = launch.pre;
      all.pitch = launch.size;
      break;
    case LaunchKind::kScan:
    case LaunchKind::kSort: all.pitch = launch.pre; break;
    case LaunchKind::kOpaque: all.pitch = launch.opaque->rows; break;
  }
  all.count = all.pitch;
  if (launch.row_count == 0) return all;
  all.outer_first = launch.first_row / all.pitch;
  all.first = launch.first_row % all.pitch;
  const bool whole = all.first == 0 && launch.row_count % all.pitch == 0;
  all.outer_count = whole ? launch.row_count / all.pitch : 1;
  if (!whole) all.count = launch.row_count;
  return all;
}

namespace {

template <class Program, class L>
std::vector<Program*> list_programs(L& launch) {
  std::vector<Program*> programs = {&launch.body, &launch.a, &launch.b, &launch.scatter_index,
                                    &launch.scatter_source};
  for (Program& input : launch.inputs) programs.push_back(&input);
  return programs;
}

}  // namespace

std::vector<ScalarProgram*> programs_of(Launch& launch) {
  return list_programs<ScalarProgram>(launch);
}

std::vector<const ScalarProgram*> programs_of(const Launch& launch) {
  return list_programs<const ScalarProgram>(launch);
}

const ScalarProgram& line_program(const Launch& launch) {
  const bool product = launch.kind == LaunchKind::kScan && launch.scan == ScanOp::kProduct;
  return product ? launch.a : launch.b;
}

DType scan_dtype(const Launch& launch) {
  const bool index = launch.scan == ScanOp::kArgMax || launch.scan == ScanOp::kArgMin;
  return index ? DType::kI32 : line_program(launch).instrs.back().dtype;
}

// Returns true if the index program loads only through maps with stride 0 along q.
bool index_repeats(const Launch& launch) {
  if (launch.post == 1) return true;
  const ScalarProgram& program = launch.scatter_index;
  for (const Instr& instr : program.instrs) {
    const bool still = instr.kind == InstrKind::kConst || instr.kind == InstrKind::kRuntimeScalar ||
                       instr.kind == InstrKind::kOp || instr.kind == InstrKind::kLoad ||
                       (instr.kind == InstrKind::kCoord && instr.divisor % launch.post == 0);
    if (!still) return false;
  }
  const View fence{{launch.pre * launch.count, launch.post}, {1, 1}, 0, {}, {}};
  for (const Access& access : program.accesses) {
    const View& view = access.map.views.front();
    Shape cut;
    View fine;
    if (!common_cut({&view, &fence}, cut) || !recut(view, cut, fine)) return false;
    std::int64_t covered = 1;
    for (std::size_t d = cut.size(); d-- > 0 && covered < launch.post; covered *= cut[d]) {
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
  CHECK(launch.kind == LaunchKind::kMap && store.ring_word < 0, launch.name);
  CHECK(store.at < static_cast<int>(launch.body.instrs.size()), launch.name);
  CHECK(launch.body.instrs[static_cast<size_t>(store.at)].dtype == DType::kI32, launch.name);
  CHECK(launch.bindings[static_cast<size_t>(store.binding)].mode == BindMode::kReadWrite,
        launch.name);
}

void verify_opaque(const Launch& launch) {
  CHECK(launch.opaque != nullptr && launch.body.instrs.empty(), launch.name);
  const OpaqueKernel& kernel = *launch.opaque;
  CHECK(launch.inputs.size() == kernel.inputs.size(), launch.name);
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
    const OpaqueInput& input = kernel.inputs[i];
    CHECK(launch.inputs[i].instrs.empty() == input.absent(), launch.name);
    CHECK(!input.by_row || input.size % kernel.rows == 0, launch.name);
    if (!input.absent()) verify_program(launch, launch.inputs[i], 1, input.size);
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
  std::int64_t rows = launch.rows, elements = launch.rows * launch.cols;
  if (launch.kind == LaunchKind::kMap) CHECK(launch.cols == 1, launch.name);
  if (launch.kind == LaunchKind::kContraction) {
    rows = elements = launch.batch * launch.parts * launch.m * launch.n;
    if (launch.parts > 1) {
      CHECK(
          launch.batch == 1 && !launch.by_rows && !launch.bias_grad_row && !launch.bias_grad_column,
          launch.name);
      CHECK((launch.parts - 1) * launch.part_depth < launch.k &&
                launch.k <= launch.parts * launch.part_depth,
            launch.name);
    }
    if (launch.by_rows) {
      CHECK(launch.batch == 1 && !launch.bias_grad_row && !launch.bias_grad_column, launch.name);
      CHECK(launch.n <= kMaxRowColumns, launch.name);
      rows = launch.m;
    }
    verify_program(launch, launch.a, 1, launch.batch * launch.m * launch.k);
    verify_program(launch, launch.b, 1, launch.batch * launch.k * launch.n);
    if (launch.bias_grad_row || launch.bias_grad_column) {
      CHECK(launch.batch == 1 && !(launch.bias_grad_row && launch.bias_grad_column), launch.name);
      verify_store(launch, launch.bias_grad_store, 1, launch.bias_grad_row ? launch.n : launch.m);
    }
  }
  if (launch.kind == LaunchKind::kScatter) {
    rows = elements = launch.pre * launch.size * launch.post;
    const std::int64_t sources = launch.pre * launch.count * launch.post;
    verify_program(launch, launch.scatter_index, 1, sources);
    verify_program(launch, launch.scatter_source, 1, sources);
  }
  if (launch.kind == LaunchKind::kScan || launch.kind == LaunchKind::kSort) {
    rows = elements = launch.pre * launch.count * launch.post;
    const bool sort = launch.kind == LaunchKind::kSort;
    const bool has_a = !sort && (launch.scan == ScanOp::kProduct || launch.scan == ScanOp::kLinear);
    const bool has_b = sort || launch.scan != ScanOp::kProduct;
    CHECK(launch.a.instrs.empty() != has_a && launch.b.instrs.empty() != has_b, launch.name);
    verify_program(launch, launch.a, 1, elements);
    verify_program(launch, launch.b, 1, elements);
  }
  if (launch.kind == LaunchKind::kOpaque) verify_opaque(launch);
  const Window window = window_of(launch);
  const std::int64_t batches = launch.kind == LaunchKind::kContraction ? launch.batch * launch.parts
                               : launch.kind == LaunchKind::kScatter   ? launch.pre
                                                                       : 1;
  CHECK(window.first >= 0 && window.count >= 1 && window.end() <= window.pitch, launch.name);
  CHECK(window.outer_first >= 0 && window.outer_first + window.outer_count <= batches, launch.name);
  if (launch.kind == LaunchKind::kOpaque) return;
  verify_program(launch, launch.body, rows, elements);
  for (const Store& store : launch.stores) verify_store(launch, store, rows, elements);
}

}  // namespace

std::string kind_name(const Launch& launch) {
  switch (launch.kind) {
    case LaunchKind::kMap: return "map";
    case LaunchKind::kRow: return "row";
    case LaunchKind::kContraction: return "contraction";
    case LaunchKind::kScatter: return "scatter";
    case LaunchKind::kScan: return "scan";
    case LaunchKind::kSort: return "sort";
    case LaunchKind::kOpaque: return launch.opaque->name;
  }
  return "?";
}

namespace {

std::string whole_domain(const Launch& launch) {
  const auto join = [](std::initializer_list<std::int64_t> sizes) {
    std::string text;
    for (const std::int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
    return text;
  };
  switch (launch.kind) {
    case LaunchKind::kMap: return join({launch.rows});
    case LaunchKind::kRow: return join({launch.rows, launch.cols});
    case LaunchKind::kContraction: {
      const std::string mnk = join({launch.m, launch.n, launch.k});
      if (launch.parts > 1) return std::to_string(launch.parts) + "/" + mnk;
      return launch.batch == 1 ? mnk : std::to_string(launch.batch) + "*" + mnk;
    }
    case LaunchKind::kScatter:
      return join({launch.pre, launch.count, launch.post}) + "->" + std::to_string(launch.size);
    case LaunchKind::kScan:
    case LaunchKind::kSort: return join({launch.pre, launch.count, launch.post});
    case LaunchKind::kOpaque: return launch.opaque->domain;
  }
  return "?";
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

namespace {

// Checks what Launch::concurrent requires of two launches, as far as buffers show it.
void verify_concurrent(const Program& program, const Launch& launch, const Launch& other) {
  for (const Binding& mine : launch.bindings) {
    for (const Binding& theirs : other.bindings) {
      if (mine.buffer != theirs.buffer) continue;
      const BufferKind kind = program.buffers[static_cast<size_t>(mine.buffer)].kind;
      const bool read = mine.mode == BindMode::kRead && theirs.mode == BindMode::kRead;
      CHECK(read || kind == BufferKind::kGrads,
            launch.name + " runs beside " + other.name + ", which it shares a buffer with");
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
}

std::string print(const Program& program) {
  TextBuilder out;
  int number = 0;
  for (const Launch& launch : program.launches) {
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
  for (const BufferDecl& buffer : program.buffers) {
    out << "buffer " << buffer.name << ' ' << buffer.bytes << " B\n";
  }
  out << "peak " << program.peak_bytes << " B\n";
  return out.str();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
