// SPDX-License-Identifier: MIT
// Graph to Program.
#include "plan/plan.h"

#include <algorithm>

#include "base/check.h"
#include "ops/registry.h"
#include "plan/binding_limits.h"
#include "plan/exchange.h"
#include "plan/lower.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns the steps of the host with positions in planned_launches().
std::vector<HostStep> host_steps(const Placement& placement) {
  std::vector<std::size_t> begins = {0};  // of the launches of each group
  for (const int g : placement.order)
    begins.push_back(begins.back() + 1 + placement.copied.count(g));
  std::vector<HostStep> steps = placement.host_steps;
  for (HostStep& step : steps) step.before = begins[step.before];
  return steps;
}

// Returns the first of the launches into which planned launches from number `planned` on were
// split.
std::size_t first_part(const Program& program, std::size_t planned) {
  const auto at = std::find_if(
      program.launches.begin(), program.launches.end(),
      [&](const Launch& launch) { return static_cast<std::size_t>(launch.planned) >= planned; });
  return static_cast<std::size_t>(at - program.launches.begin());
}

// Adds the step that sums a scalar output over the ranks.
void add_sum(Program& program, const std::string& output) {
  const Port& port = *std::find_if(program.outputs.begin(), program.outputs.end(),
                                   [&](const Port& each) { return each.name == output; });
  const ExchangeStops stops = exchange_stops(program, output, {{0, 1}});
  CHECK(stops.resume < program.launches.size(), "nothing reads the output " + output);
  const auto at = std::upper_bound(
      program.host_steps.begin(), program.host_steps.end(), stops.resume,
      [](std::size_t before, const HostStep& step) { return before < step.before; });
  program.host_steps.insert(at, {HostStep::Kind::kSum, -1, port.buffer, stops.resume});
}

}  // namespace

Program plan(const Graph& graph, const PlanOptions& options) {
  Program program;
  ScalarWords scalars;
  const auto add_scalar = [&](const std::string& name) {
    const int word = static_cast<int>(program.scalars.size()) + 2;
    if (!scalars.try_emplace(name, word).second) return;
    CHECK(word < kMaxRuntimeScalars, "too many runtime scalars");
    program.scalars.push_back(name);
  };
  for (const Node& node : graph.nodes) {
    if (node.op == &ops::scalar) add_scalar(node.attrs.text("name"));
  }
  if (!options.rings.empty()) add_scalar(kRingScalar);

  Placement placement = place(graph, options);
  for (const auto& [g, copied, to] : planned_launches(placement)) {
    if (g < 0) {
      program.launches.push_back(lower_copy(graph, placement, scalars, copied, to));
      continue;
    }
    program.launches.push_back(
        lower_group(graph, placement, scalars, g, placement.members[static_cast<size_t>(g)]));
    program.launches.back().concurrent = placement.concurrent.contains(g);
    program.launches.back().fused_sequence = placement.fused_sequence.contains(g);
    const auto blocks = placement.blocks.find(g);
    if (blocks != placement.blocks.end()) program.launches.back().blocks = blocks->second;
  }
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    program.launches[i].planned = static_cast<int>(i);
  }
  program.host_steps = host_steps(placement);
  program.buffers = std::move(placement.buffers);
  program.inputs = std::move(placement.inputs);
  program.outputs = std::move(placement.outputs);
  for (const BufferDecl& buffer : program.buffers) program.peak_bytes += buffer.bytes;
  const bool sharded = !options.buckets.empty();
  if (!options.exchange.empty() && !sharded)
    split_exchange(program, options.exchange, options.bucket_bytes);
  if (options.max_binding_bytes > 0)
    fit_bindings(program, {options.max_binding_bytes, options.max_bindings, !options.any_size});
  for (HostStep& step : program.host_steps) step.before = first_part(program, step.before);
  if (!options.exchange.empty() && sharded) add_sum(program, options.exchange);
  return program;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
