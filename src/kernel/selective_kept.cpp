// SPDX-License-Identifier: MIT
#include "kernel/selective_kept.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "kernel/selective.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::int64_t kStateBytes = 4;

bool keeps(const Launch& launch) {
  const SelectiveKernel* kernel = find_kernel<SelectiveKernel>(launch);
  return kernel != nullptr && kernel->scan.keeps_states;
}

// Returns the last element of a binding that the map may reach.
std::int64_t last_reached(const IndexMap& map) {
  const View& view = map.views.back();
  std::int64_t last = view.offset;
  for (std::size_t k = 0; k < view.shape.size(); ++k)
    last += std::max<std::int64_t>(0, view.strides[k] * (view.shape[k] - 1));
  return last;
}

// Returns true if the program of a backward pass loads exactly the saved states, contiguously.
bool is_kept(const Launch& launch, const ScalarProgram& program) {
  const SelectiveKernel* kernel = find_kernel<SelectiveKernel>(launch);
  if (kernel == nullptr || kernel->scan.pass != SelectivePass::kBackward ||
      &program != &launch.as<OpaqueLaunch>().input(SelectiveInput::kStates) ||
      program.instrs.size() != 1 || program.accesses.size() != 1)
    return false;
  const IndexMap& map = program.accesses[0].map;
  const View view = map.views.back().simplified();
  return map.views.size() == 1 && !view.masked() &&
         (view.shape.empty() || (view.shape.size() == 1 && view.strides[0] == 1));
}

// How a launch uses a binding from element `begin` on.
struct Uses {
  bool backward = false, otherwise = false, writes = false;
};

Uses uses_of(const Launch& launch, int binding, std::int64_t begin) {
  Uses uses;
  bool reads = false, stores = false;  // in any part of the binding
  for (const ScalarProgram* program : programs_of(launch)) {
    for (std::size_t i = 0; i < program->accesses.size(); ++i) {
      const Access& access = program->accesses[i];
      if (access.binding != binding) continue;
      reads = true;
      const bool by_data =
          std::any_of(program->instrs.begin(), program->instrs.end(), [&](const Instr& instr) {
            return instr.kind == InstrKind::kLoadAt && instr.index == static_cast<int>(i);
          });
      if (!by_data && last_reached(access.map) < begin) continue;
      (is_kept(launch, *program) ? uses.backward : uses.otherwise) = true;
    }
  }
  for (const Store& store : launch.stores) {
    if (store.binding != binding) continue;
    stores = true;
    uses.writes |= last_reached(store.map) >= begin;
  }
  // Uses without an index map may reach any element.
  const BindMode mode = launch.bindings[static_cast<std::size_t>(binding)].mode;
  uses.otherwise |= !reads && mode != BindMode::kWrite;
  uses.writes |= !stores && mode != BindMode::kRead;
  return uses;
}

// The saved states in a buffer: the first element, and the scan that saves them. Launches of a scan
// that is split by batches share its number.
struct Kept {
  std::int64_t begin;
  int scan;
};

}  // namespace

std::set<int> paired_states(const Program& program) {
  std::set<int> paired, others;
  std::map<int, Kept> held;  // by buffer, until the states are overwritten
  for (const Launch& launch : program.launches) {
    for (std::size_t b = 0; b < launch.bindings.size(); ++b) {
      const Binding& binding = launch.bindings[b];
      const auto found = held.find(binding.buffer);
      if (found != held.end() && found->second.scan == launch.planned) continue;
      const std::int64_t first = binding.offset / kStateBytes;
      const Uses uses = uses_of(launch, static_cast<int>(b),
                                found == held.end() ? 0 : found->second.begin - first);
      // A backward pass that reads states not saved by a scan reads them in logical order.
      if (found == held.end() ? uses.backward : uses.otherwise) others.insert(binding.buffer);
      if (found != held.end() && uses.writes) held.erase(found);
    }
    if (!keeps(launch)) continue;
    const SelectiveSizes sizes = kernel_of<SelectiveKernel>(launch).scan.sizes;
    const Store& store = launch.stores.at(sizes.states_result());
    const Binding& binding = launch.bindings.at(static_cast<std::size_t>(store.binding));
    const std::int64_t begin = binding.offset / kStateBytes + store.map.views.back().offset;
    Kept& kept = held.try_emplace(binding.buffer, Kept{begin, launch.planned}).first->second;
    kept.begin = std::min(kept.begin, begin);
    const BufferDecl& buffer = program.buffers[static_cast<std::size_t>(binding.buffer)];
    if (sizes.states % 2 == 0 && buffer.kind == BufferKind::kSlot) paired.insert(binding.buffer);
  }
  for (const int buffer : others) paired.erase(buffer);
  return paired;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
