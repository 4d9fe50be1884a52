// SPDX-License-Identifier: MIT
// Cases in which fusion must revise its decision: an update that cannot be in place after all, and
// a value that must stay out of a launch which would wait for it.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "ops/registry.h"
#include "passes/fuse/fuse.h"
#include "plan/plan.h"
#include "support/graph_builder.h"
#include "support/source_path.h"

namespace tensorgrad::testing {
namespace {

std::size_t most_bound(const Program& program) {
  std::size_t most = 0;
  for (const Launch& launch : program.launches) most = std::max(most, launch.bindings.size());
  return most;
}

// Seven operands and the state. The product needs both the old and the new value of the state, so
// the update cannot be in place. A launch that relies on it binds one buffer too many.
TEST(FuseLimits, update_that_cannot_be_in_place_is_fused_again) {
  GraphBuilder s;
  const Shape shape = {6, 6};
  const Tensor v = s.leaf(ops::state, "v", shape, f32, s.draw.values(f32, 36, -1, 1));
  Tensor fresh = v;
  for (int i = 0; i < 7; ++i) fresh = sin(fresh) * s.input(shape);
  s.graph().updates = {{v.id(), fresh.id()}};
  s.output("y", matmul(v, fresh));
  const Graph simple = compile_for_test(s.graph(), 8).graph;
  EXPECT_EQ(most_bound(plan(fuse(simple, {.max_bindings = 8}), {})), 9U);
  EXPECT_LE(most_bound(compile_for_test(s.graph(), 8).program), 8U);
  for (const int limit : {4, 7, 8, 9}) {
    EXPECT_LE(most_bound(compile_for_test(s.graph(), limit).program),
              static_cast<std::size_t>(limit));
    expect_close(s.graph(), run_graph(s.graph(), s.leaves, Where::kCpu, limit),
                 interpret_graph(s.graph(), s.leaves), 1e-5, "limit " + std::to_string(limit));
  }
}

// The graph of the test of the pass itself, in which the drawn targets stay out of the launch over
// all logits.
TEST(FuseLimits, fusing_targets_first_keeps_random_numbers) {
  const std::string name = test::source_path("tests/passes/fuse/targets_drawn_first.ir");
  std::ostringstream text;
  text << std::ifstream(name).rdbuf();
  const std::string whole = text.str();
  const Graph graph = parse(std::string_view(whole).substr(0, whole.find("----\n")), name, find_op);
  Draw draw(5);
  ValueMap leaves;
  for (const Node& node : graph.nodes) {
    if (node.op != &ops::input) continue;
    const std::string& leaf = node.attrs.text("name");
    const double most = leaf == "texts" ? 64 : leaf == "rows" ? 65535 : 1;
    leaves[leaf] = draw.values(node.type.dtype, numel(node.type.shape), most > 1 ? 0 : -most, most);
  }
  const ValueMap want = interpret_graph(graph, leaves);
  expect_close(graph, run_graph(graph, leaves, Where::kCpu), want, 1e-4, "fused");
  const ScopedEnv env("TENSORGRAD_SKIP", "fuse");
  expect_close(graph, run_graph(graph, leaves, Where::kCpu), want, 1e-4, "not fused");
}

}  // namespace
}  // namespace tensorgrad::testing
