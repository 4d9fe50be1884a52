// SPDX-License-Identifier: MIT
// Running graphs from text: leaves are filled with values in bounds, and devices match the
// reference.
#include <gmock/gmock.h>

#include "compile/debug/graph_run.h"
#include "compile/runtime/element_codec.h"
#include "debug/wrapped_device.h"
#include "ops/registry.h"
#include "support/random_graph.h"
#include "tensorgrad/train/debug.h"

namespace tensorgrad::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// A small training step. The parameter is read by name and updated through the arena, the index
// selects rows of a table, and the step count is incremented.
constexpr const char* kTraining =
    R"(%0 = parameter() {dtype=0, name="w", offset=0, shape=[3,2]} : f32[3,2] @ "net.cpp":7
%1 = arena() {dtype=0, name="params", offset=0, shape=[64]} : f32[64]
%2 = input() {dtype=1, name="rows", shape=[5,2]} : i32[5,2]
%3 = gather(%0, %2) {axis=0} : f32[5,2] @ "net.cpp":9
%4 = state() {dtype=0, init=f:0x1p+1, name="count", shape=[]} : f32[]
%5 = scalar() {dtype=0, name="_lr"} : f32[]
%6 = broadcast(%5) {shape=[64]} : f32[64]
%7 = mul(%1, %6) : f32[64] @ "net.cpp":12
%8 = constant() {dtype=0, value=f:0x1p+0} : f32[]
%9 = add(%4, %8) : f32[]
output picked = %3
update %1 = %7
update %4 = %9
)";

HostTensor floats(const Shape& shape, const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {f32, shape, {bytes.begin(), bytes.end()}};
}

TEST(GraphRun, graph_with_updates_matches_between_cpu_and_reference) {
  const ir::RunResult want = ir::run(kTraining, "x.ir", {}, {.kind = "reference"});
  const ir::RunResult got = ir::run(kTraining, "x.ir", {}, {.kind = "cpu", .threads = 1});
  EXPECT_EQ(want.device, "reference");
  EXPECT_THAT(got.device, HasSubstr("cpu ("));
  ASSERT_EQ(got.values.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got.values[i].first, want.values[i].first);
    EXPECT_EQ(got.values[i].second.floats(), want.values[i].second.floats());
  }
  EXPECT_EQ(got.values[0].first, "picked");
  EXPECT_EQ(got.values[1].first, "update params");
  EXPECT_EQ(got.values[2].second.floats(), std::vector<float>{3});  // states start as `init`
}

// A few bytes of text can describe any amount of memory.
TEST(GraphRun, graph_of_huge_tensors_is_rejected) {
  const std::string inputs =
      R"(%0 = input() {dtype=0, name="x", shape=[2000000000]} : f32[2000000000]
%1 = sum(%0) {axes=[0]} : f32[]
output y = %1
)";
  const std::string values = R"(%0 = iota() {axis=0, shape=[2000000000]} : i32[2000000000]
%1 = cumsum(%0) {axis=0, reverse=0} : i32[2000000000]
%2 = max(%1) {axes=[0]} : i32[]
output y = %2
)";
  for (const char* device : {"cpu", "reference"}) {
    try {
      ir::run(inputs, "x.ir", {}, {.kind = device});
      FAIL() << device;
    } catch (const UserError& error) {
      EXPECT_THAT(error.message(), HasSubstr("x.ir: needs more than 2147483648 bytes of memory"));
    }
  }
  EXPECT_THROW(ir::run(values, "x.ir", {}, {.kind = "reference"}), Error);
  EXPECT_THROW(ir::run(values, "x.ir", {}, {.kind = "cpu"}), Error);
  ir::LeafOptions small;
  small.max_bytes = 8;
  EXPECT_THROW(ir::run(kTraining, "x.ir", small, {.kind = "cpu"}), UserError);
}

TEST(GraphRun, f16_operand_of_an_op_that_computes_in_f32_is_rejected) {
  for (const char* op : {"max", "sum", "argmin"}) {
    const std::string result = std::string(op) == "argmin" ? "i32[2]" : "f16[2]";
    const std::string text =
        "%0 = input() {dtype=4, name=\"c\", shape=[2,4]} : f16[2,4]\n%1 = " + std::string(op) +
        "(%0) {axes=[1]} : " + result + "\noutput y = %1\n";
    try {
      ir::run(text, "x.ir", {}, {.kind = "cpu"});
      FAIL() << op;
    } catch (const DtypeError& error) {
      EXPECT_THAT(error.message(),
                  HasSubstr("x.ir: %1: " + std::string(op) + ": expected operands of four"));
    }
  }
  const std::string views = R"(%0 = input() {dtype=4, name="c", shape=[2,4]} : f16[2,4]
%1 = permute(%0) {axes=[1,0]} : f16[4,2]
%2 = cast(%1) {dtype=0} : f32[4,2]
output y = %2
)";
  EXPECT_EQ(ir::run(views, "x.ir", {}, {.kind = "cpu"}).values.size(), 1U);
}

TEST(GraphRun, given_leaves_are_used_and_the_others_follow_the_seed) {
  const DeviceOptions cpu{.kind = "cpu", .threads = 1};
  ir::LeafOptions leaves;
  leaves.values["w"] = floats({3, 2}, {7, 7, 7, 7, 7, 7});
  leaves.values["_lr"] = floats({}, {2});
  const auto values = ir::run(kTraining, "x.ir", leaves, cpu).values;
  // Generated row indices are within the table.
  EXPECT_THAT(values[0].second.floats(), Each(7.0F));
  const std::vector<float> params = values[1].second.floats();
  EXPECT_EQ(params[0], 14);
  EXPECT_LT(std::abs(params[6]), 2);
  leaves.seed = 1;
  const auto others = ir::run(kTraining, "x.ir", leaves, cpu).values;
  EXPECT_EQ(others[1].second.floats()[0], 14);
  EXPECT_NE(others[1].second.floats()[6], params[6]);
}

// The part of one of several objectives starts at an offset in the arena. Its states start at 0.
TEST(GraphRun, parts_of_states_are_found_by_the_names_of_parameters) {
  constexpr const char* kText =
      R"(%0 = parameter() {dtype=0, name="other", offset=0, shape=[2]} : f32[2]
%1 = parameter() {dtype=0, name="w", offset=64, shape=[2]} : f32[2]
%2 = arena() {dtype=0, name="params", offset=64, shape=[64]} : f32[64]
%3 = state() {dtype=0, init=f:0x0p+0, name="optim.d.m", shape=[64]} : f32[64]
%4 = add(%2, %3) : f32[64]
update %2 = %4
)";
  ir::LeafOptions leaves;
  leaves.values["w"] = floats({2}, {1, 2});
  leaves.values["other"] = floats({2}, {7, 7});
  leaves.values["state/optim.d.m/w"] = floats({2}, {10, 20});
  leaves.values["state/optim.d.m/other"] = floats({2}, {5, 5});
  const ir::RunResult result = ir::run(kText, "x.ir", leaves, {.kind = "cpu", .threads = 1});
  const std::vector<float> params = result.values.at(0).second.floats();
  EXPECT_EQ(params[0], 11);
  EXPECT_EQ(params[1], 22);
  EXPECT_EQ(result.ignored, std::vector<std::string>{"state/optim.d.m/other"});
}

void expect_error(const ir::LeafOptions& leaves, const std::string& text,
                  const std::string& message) {
  try {
    ir::run(text, "x.ir", leaves, {.kind = "reference"});
    ADD_FAILURE() << "no error: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), message);
  }
}

TEST(GraphRun, errors_name_the_leaf_or_the_line) {
  ir::LeafOptions unknown, wrong;
  unknown.values["v"] = floats({1}, {1});
  wrong.values["w"] = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_error(unknown, kTraining, "unknown leaf 'v'; available: w, params, rows, count, _lr");
  expect_error(wrong, kTraining, "leaf 'w': expected f32[3,2], got f32[2,3]");
  expect_error({}, "%0 = what()", "x.ir:1: expected the name of an op, got 'what'");
  // The error names the line of the op, not the line after it that the parser has reached.
  expect_error({}, "%0 = iota() {axis=0, dtype=0, shape=[2]} : f32[3]\n\noutput x = %0\n",
               "x.ir:1: expected type f32[2]");
  expect_error({},
               "%0 = input() {dtype=0, name=\"x\", shape=[2]} : f32[2]\n"
               "%1 = data() {dtype=0, name=\"x\", shape=[2]} : f32[2]\noutput y = %1\n",
               "two leaves are named 'x'");
  expect_error({}, "", "x.ir: the graph has no output and no update");
  try {
    ir::optimize(kTraining, "x.ir", {"tidy"});
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(),
              "unknown pass 'tidy'; available: cse, dce, expand, fold, fuse, "
              "rematerialize, simplify, split_k, split_k_to_binding_limit, split_reduce, "
              "split_scatter");
  }
}

TEST(GraphRun, optimize_runs_the_named_passes_in_order) {
  const std::string text = R"(%0 = input() {dtype=0, name="x", shape=[4]} : f32[4]
%1 = neg(%0) : f32[4]
%2 = neg(%1) : f32[4]
output y = %2
)";
  EXPECT_EQ(ir::optimize(text, "x.ir", {"dce"}), text);
  EXPECT_EQ(ir::optimize(text, "x.ir", {"simplify", "dce"}),
            "%0 = input() {dtype=0, name=\"x\", shape=[4]} : f32[4]\noutput y = %0\n");
  const std::string fused = ir::optimize(text, "x.ir", ir::passes());
  EXPECT_THAT(fused, HasSubstr("// group 0"));
}

// A graph is compiled as a model on that device: a long row is reduced by several launches, and a
// large buffer is bound by ranges.
TEST(GraphRun, a_graph_is_compiled_for_the_limits_of_its_device) {
  GraphBuilder s;
  s.output("sum", sum(s.input({65536})));
  const LeafWords leaves = fill_leaves(s.graph(), {}, 1);
  const auto launches = [&](const DeviceLimits& limits) {
    const auto device = std::make_shared<RecordingDevice>(make_null_device(limits));
    run_on_device(s.graph(), leaves, device);
    return device->programs.at(0).launches.size();
  };
  EXPECT_EQ(launches({}), 2U);
  EXPECT_GT(launches({.max_binding_bytes = 1 << 16}), 2U);
  EXPECT_THROW(launches({.max_buffer_bytes = 1 << 16}), UserError);
}

TEST(GraphRun, splits_can_be_run_as_passes) {
  const std::string text = R"(%0 = input() {dtype=0, name="x", shape=[65536]} : f32[65536]
%1 = sum(%0) {axes=[0]} : f32[]
output y = %1
)";
  EXPECT_THAT(ir::optimize(text, "x.ir", {"split_reduce"}), HasSubstr("= reshape(%0)"));
  EXPECT_EQ(ir::optimize(text, "x.ir", {"split_k_to_binding_limit"}), text);
}

}  // namespace
}  // namespace tensorgrad::testing
