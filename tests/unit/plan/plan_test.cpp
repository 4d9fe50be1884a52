// SPDX-License-Identifier: MIT
// Plans of small graphs: launches, buffers, the memory budget, and errors that verify() finds in a
// program.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/registry.h"
#include "passes/fuse/fuse.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

// Returns the plan of softmax(x w + b) for x f32[4,8].
Program planned(std::int64_t memory_budget = 0) {
  PlanOptions options;
  options.memory_budget = memory_budget;
  GraphBuilder s;
  s.output("y", softmax(matmul(s.input({4, 8}), s.input({8, 16})) + s.input({16})));
  return plan(fuse(s.graph(), {}), options);
}

const BufferDecl& buffer(const Program& program, const std::string& name) {
  const auto at = std::find_if(program.buffers.begin(), program.buffers.end(),
                               [&](const BufferDecl& each) { return each.name == name; });
  EXPECT_NE(at, program.buffers.end()) << name;
  return *at;
}

TEST(Plan, of_a_layer_is_a_product_and_a_row_launch) {
  const Program program = planned();
  ASSERT_EQ(program.launches.size(), 2U);
  EXPECT_TRUE(program.launches[0].is<ContractionLaunch>());
  EXPECT_TRUE(program.launches[1].is<RowLaunch>());
  const auto& product = program.launches[0].as<ContractionLaunch>();
  EXPECT_EQ(product.m * product.n, 64);
  EXPECT_EQ(product.k, 8);
}

TEST(Plan, work_per_row_counts_for_each_row) {
  GraphBuilder s;
  s.output("y", log(sum(exp(s.input({100, 16})), 1)));
  const Program program = plan(fuse(s.graph(), {}), {});
  ASSERT_EQ(program.launches.size(), 1U);
  EXPECT_EQ(program.launches[0].flops, 1600 + 1600 + 100) << "exp, sum and log";
}

TEST(Plan, peak_is_the_sum_of_all_buffers) {
  const Program program = planned();
  std::int64_t sum = 0;
  for (const BufferDecl& each : program.buffers) sum += each.bytes;
  EXPECT_EQ(program.peak_bytes, sum);
  EXPECT_EQ(buffer(program, "input in1").bytes, 8 * 16 * 4);
  EXPECT_EQ(buffer(program, "input in2").bytes, 256) << "64 bytes, rounded up";
  EXPECT_EQ(buffer(program, "output y").bytes, 256);
}

TEST(Plan, budget_is_kept_exactly) {
  const std::int64_t peak = planned().peak_bytes;
  EXPECT_EQ(planned(peak).peak_bytes, peak);
  EXPECT_THROW(planned(peak - 1), UserError);
}

TEST(Plan, budget_errors_list_the_parameters_in_one_line) {
  GraphBuilder s;
  s.output("y", s.leaf(ops::arena, "params", {8}, f32, {}) * 2);
  PlanOptions options;
  options.params_elements = 8;
  options.memory_budget = 1;
  try {
    plan(fuse(s.graph(), {}), options);
    ADD_FAILURE() << "planned";
  } catch (const UserError& error) {
    EXPECT_NE(error.message().find("\n    32 bytes: parameters f32[8]\n"), std::string::npos)
        << error.message();
  }
}

TEST(Plan, is_the_same_for_the_same_graph) { EXPECT_EQ(print(planned()), print(planned())); }

TEST(Plan, ring_has_the_requested_length) {
  GraphBuilder s;
  s.output("loss", mean(s.input({8, 8})));
  PlanOptions options;
  options.rings = {{"loss", 1000}};
  const Program program = plan(fuse(s.graph(), {}), options);
  EXPECT_EQ(buffer(program, "output loss").bytes, 4096);
}

TEST(Plan, table_names_launches_buffers_and_the_peak) {
  const std::string text = print(planned());
  for (const char* part : {"contraction ", " 4x16x8 ", "row ", " 4x16 ", "read input in0",
                           "write output y", "buffer input in2 256 B", "peak "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST(Program, verify_finds_broken_programs) {
  verify(planned());
  const auto broken = [](const std::function<void(Program&)>& spoil) {
    Program program = planned();
    spoil(program);
    EXPECT_THROW(verify(program), InternalError);
  };
  broken([](Program& p) { p.launches[0].bindings[1].buffer = p.launches[0].bindings[0].buffer; });
  broken([](Program& p) { p.launches[0].bindings[0].offset = 4; });
  broken([](Program& p) { p.launches[0].bindings[0].bytes += 1 << 20; });
  broken([](Program& p) { p.launches[1].as<RowLaunch>().rows += 1; });
  broken([](Program& p) { p.launches[0].as<ContractionLaunch>().k += 1; });
  broken([](Program& p) { p.launches[1].body.instrs.back().operands = {1000}; });
  broken([](Program& p) { p.launches[1].stores[0].binding = 99; });
  broken([](Program& p) { p.buffers[0].bytes = 100; });
}

}  // namespace
}  // namespace tensorgrad::testing
