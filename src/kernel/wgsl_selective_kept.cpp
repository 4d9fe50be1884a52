// SPDX-License-Identifier: MIT
// Which selective scans may keep their states by pairs: those of which nobody but backward passes
// reads them. Where a gradient is differentiated again, plain maps read them as they are numbered.
#include <algorithm>
#include <cstdint>

#include "kernel/selective.h"
#include "kernel/wgsl_selective.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kStateBytes = 4;

// The last element of a buffer that the map may lead to.
std::int64_t last_reached(const IndexMap& map) {
  const View& view = map.views.back();
  std::int64_t last = view.offset;
  for (std::size_t k = 0; k < view.shape.size(); ++k)
    last += std::max<std::int64_t>(0, view.strides[k] * (view.shape[k] - 1));
  return last;
}

// All kept states as they lie, for a backward pass, and nothing else.
bool is_kept(const Launch& launch, const ScalarProgram& program) {
  if (launch.kind != LaunchKind::kSelectiveScan || launch.selective != SelectivePart::kBackward ||
      &program != &launch.input(SelectiveInput::kStates) || program.instrs.size() != 1)
    return false;
  const IndexMap& map = program.accesses.at(0).map;
  const View view = map.views.back().simplified();
  return map.views.size() == 1 && !view.masked() &&
         (view.shape.empty() || (view.shape.size() == 1 && view.strides[0] == 1));
}

// Whether the launch reads anything of the binding from element `begin` on, but as a backward pass.
bool reads_on(const Launch& launch, int binding, std::int64_t begin) {
  bool listed = false;
  for (const ScalarProgram* program : programs_of(launch)) {
    for (std::size_t i = 0; i < program->accesses.size(); ++i) {
      const Access& access = program->accesses[i];
      if (access.binding != binding) continue;
      listed = true;
      const bool by_data =
          std::any_of(program->instrs.begin(), program->instrs.end(), [&](const Instr& instr) {
            return instr.kind == InstrKind::kLoadAt && instr.index == static_cast<int>(i);
          });
      if (!is_kept(launch, *program) && (by_data || last_reached(access.map) >= begin)) return true;
    }
  }
  const BindMode mode = launch.bindings[static_cast<std::size_t>(binding)].mode;
  return !listed && mode != BindMode::kWrite;
}

bool writes_on(const Launch& launch, int binding, std::int64_t begin) {
  const bool stored =
      std::any_of(launch.stores.begin(), launch.stores.end(), [&](const Store& store) {
        return store.binding == binding && last_reached(store.map) >= begin;
      });
  const bool listed = std::any_of(launch.stores.begin(), launch.stores.end(),
                                  [&](const Store& store) { return store.binding == binding; });
  const BindMode mode = launch.bindings[static_cast<std::size_t>(binding)].mode;
  return stored || (!listed && mode != BindMode::kRead);
}

// Whether until something else is written there backward passes alone read the states that launch
// number `number` keeps.
bool backward_alone(const Program& program, std::size_t number) {
  const Launch& scan = program.launches[number];
  const Store& kept = scan.stores.at(2);
  const Binding& own = scan.bindings.at(static_cast<std::size_t>(kept.binding));
  const std::int64_t begin = own.offset / kStateBytes + kept.map.views.back().offset;
  for (std::size_t i = number + 1; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    if (launch.planned == scan.planned) continue;  // of other batches
    for (std::size_t b = 0; b < launch.bindings.size(); ++b) {
      const Binding& binding = launch.bindings[b];
      if (binding.buffer != own.buffer) continue;
      const std::int64_t from = begin - binding.offset / kStateBytes;
      if (reads_on(launch, static_cast<int>(b), from)) return false;
      if (writes_on(launch, static_cast<int>(b), from)) return true;
    }
  }
  return true;
}

}  // namespace

std::set<int> paired_states(const Program& program) {
  std::set<int> paired, others;
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    if (launch.kind != LaunchKind::kSelectiveScan || launch.selective != SelectivePart::kForward ||
        !keeps_states(launch) || selective_sizes(launch).states % 2 != 0)
      continue;
    const auto binding = static_cast<std::size_t>(launch.stores.at(2).binding);
    (backward_alone(program, i) ? paired : others).insert(launch.bindings.at(binding).buffer);
  }
  for (const int buffer : others) paired.erase(buffer);
  return paired;
}

}  // namespace tensorgrad::wgsl
