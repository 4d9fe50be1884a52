// SPDX-License-Identifier: MIT
#include "codegen/wgsl/vectorize.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace tensorgrad::wgsl {
namespace {

std::string component_name(int c) { return std::string(1, "xyzw"[c]); }

bool touches(const Vectorized& part, const IndexMap& map, DType dtype, Level level) {
  const bool real = dtype == DType::kF32 || dtype == DType::kF16;
  return real && level == Level::kElement &&
         vec_access(part.domain, map, part.axis, part.width) == VecAccess::kTouching;
}

// Returns the gathered accesses, which are always scalar.
std::set<int> looked_up(const ScalarProgram& program) {
  std::set<int> accesses;
  for (const Instr& instr : program.instrs) {
    if (instr.kind == InstrKind::kLoadAt) accesses.insert(instr.index);
  }
  return accesses;
}

// Calls use(binding, as_vector) for each load and store of the part.
template <class Use>
void each_use(const Vectorized& part, const Use& use) {
  const std::set<int> single = looked_up(*part.program);
  for (std::size_t i = 0; i < part.program->accesses.size(); ++i) {
    const Access& access = part.program->accesses[i];
    const bool vector = part.chosen && !single.contains(static_cast<int>(i)) &&
                        touches(part, access.map, access.dtype, access.level);
    use(access.binding, vector);
  }
  for (const Store& store : part.stores) {
    use(store.binding,
        part.chosen && store.ring_word < 0 && touches(part, store.map, store.dtype, store.level));
  }
}

}  // namespace

std::set<int> choose_vectorized(const Launch& launch, const std::vector<Vectorized*>& parts,
                                const WgslOptions& options) {
  for (bool again = true; again;) {
    again = false;
    std::set<int> vectors, others;
    std::map<int, int> widths;
    for (const Vectorized* part : parts) {
      each_use(*part, [&](int binding, bool vector) {
        const bool alike = widths.emplace(binding, part->width).first->second == part->width;
        (vector && alike ? vectors : others).insert(binding);
      });
    }
    const auto* product = launch.find<ContractionLaunch>();
    if (product != nullptr && product->has_bias_grad())
      others.insert(product->bias_grad_store.binding);
    for (const int binding : others) vectors.erase(binding);
    std::erase_if(vectors, [&](int binding) {
      return options.scalar_buffers.contains(
          launch.bindings[static_cast<std::size_t>(binding)].buffer);
    });
    for (Vectorized* part : parts) {
      if (!part->chosen || !part->operand) continue;
      bool any = false, all = true;
      each_use(*part, [&](int binding, bool vector) {
        any |= vector;
        all &= !vector || vectors.contains(binding);
      });
      if ((any || part->packed) && all) continue;
      part->chosen = false;
      again = true;
    }
    if (!again) return vectors;
  }
  UNREACHABLE();
}

VectorWriter::VectorWriter(Module& module, const Vectorized& part, const std::set<int>& vectors,
                           const std::string& acc)
    : module_(module), part_(part), vectors_(vectors), whole_(part.program->instrs.size()) {
  for (int c = 0; c < part.width; ++c) {
    Domain domain = part.domain;
    if (c > 0) domain[part.axis].name += std::to_string(c);
    writers_.emplace_back(module, *part.program, domain, domain,
                          acc.empty() ? "" : acc + "." + component_name(c), component_name(c));
    writers_.back().relax(part.stores);
  }
}

// Loads one vector, one element shared by all, or separate elements.
void VectorWriter::load(Scope& scope, int number) {
  const Instr& instr = part_.program->instrs[static_cast<std::size_t>(number)];
  const Access& access = part_.program->accesses[static_cast<std::size_t>(instr.index)];
  const VecAccess run = vec_access(part_.domain, access.map, part_.axis, part_.width);
  const std::string name = "v" + std::to_string(number);
  if (run == VecAccess::kTouching && vectors_.contains(access.binding)) {
    const ElementRef place = place_of(scope, part_.domain, access.map);
    module_.hold_vectors(access.binding, access.dtype, part_.width);
    scope.line("let " + name + " = " +
               Module::load_vector(access.binding, access.dtype, place.index, part_.width) + ";");
    whole_[static_cast<std::size_t>(number)] = name;
    for (int c = 0; c < part_.width; ++c)
      writers_[static_cast<std::size_t>(c)].set_value(number, name + "." + component_name(c));
  } else if (run == VecAccess::kConstant) {
    writers_[0].write(scope, number);
    for (ProgramWriter& writer : writers_) writer.set_value(number, writers_[0].value(number));
  } else {
    name_neighbours(scope);
    for (ProgramWriter& writer : writers_) writer.write(scope, number);
  }
}

void VectorWriter::name_neighbours(Scope& scope) {
  if (std::exchange(named_, true)) return;
  const std::string& axis = part_.domain[part_.axis].name;
  for (int c = 1; c < part_.width; ++c) {
    const std::string name = axis + std::to_string(c);
    scope.line("let " + name + " = " + axis + " + " + u32_literal(c) + ";");
    scope.own(name);
  }
}

void VectorWriter::write(Scope& scope, const std::vector<int>& roots) {
  for (const int number : writers_[0].needed(roots)) {
    const InstrKind kind = part_.program->instrs[static_cast<std::size_t>(number)].kind;
    if (kind == InstrKind::kLoad) {
      load(scope, number);
    } else {
      if (kind != InstrKind::kOp && kind != InstrKind::kConst &&
          kind != InstrKind::kRuntimeScalar && kind != InstrKind::kAcc)
        name_neighbours(scope);
      for (ProgramWriter& writer : writers_) writer.write(scope, number);
    }
  }
}

std::string VectorWriter::value(int instr) const {
  const std::string& whole = whole_[static_cast<std::size_t>(instr)];
  if (!whole.empty()) return whole;
  std::string list;
  for (const ProgramWriter& writer : writers_)
    list += (list.empty() ? "" : ", ") + writer.value(instr);
  return "vec" + std::to_string(part_.width) + "<f32>(" + list + ")";
}

void VectorWriter::store(Scope& scope, const Store& store) {
  const bool vector = vectors_.contains(store.binding);
  if (!vector) {
    name_neighbours(scope);
    for (ProgramWriter& writer : writers_) writer.store(scope, store);
    return;
  }
  module_.hold_vectors(store.binding, store.dtype);
  const ElementRef place = place_of(scope, part_.domain, store.map);
  scope.line(Module::store_vector(store.binding, store.dtype, place.index, value(store.value)));
}

}  // namespace tensorgrad::wgsl
