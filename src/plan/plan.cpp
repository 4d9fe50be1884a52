// SPDX-License-Identifier: MIT
// Graph to Program.
#include "plan/plan.h"

#include "base/check.h"
#include "ops/registry.h"
#include "plan/binding_limits.h"
#include "plan/bucket_placement.h"
#include "plan/exchange.h"
#include "plan/lower.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

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
  program.buffers = std::move(placement.buffers);
  program.inputs = std::move(placement.inputs);
  program.outputs = std::move(placement.outputs);
  for (const BufferDecl& buffer : program.buffers) program.peak_bytes += buffer.bytes;
  const bool sharded = !options.buckets.empty();
  if (!options.exchange.empty() && !sharded)
    split_exchange(program, options.exchange, options.bucket_bytes);
  if (options.max_binding_bytes > 0)
    fit_bindings(program, {options.max_binding_bytes, options.max_bindings, !options.any_size});
  if (sharded) set_host_steps(program, placement, options.exchange);
  return program;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
