// SPDX-License-Identifier: MIT
// Forward pass of every op: CPU and WebGPU against the interpreter in double.
#include <algorithm>
#include <set>

#include "op_cases.h"
#include "ops/pointwise.h"
#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

constexpr double kTolerance = 3e-5;

class Forward : public ::testing::TestWithParam<OpCase> {};

TEST_P(Forward, agrees_with_double_on_cpu) {
  GraphBuilder builder(7);
  builder.output("y", GetParam().apply(inputs_of(builder, GetParam())));
  std::set<std::string> covered;
  note_covered(builder.graph(), covered);
  report_covered(covered);
  builder.check(Where::kCpu, kTolerance, GetParam().edges);
}

INSTANTIATE_TEST_SUITE_P(Op, Forward, ::testing::ValuesIn(all_cases()), name_of);

// Runs all cases of a kind in one program, because creating pipelines dominates the time on WebGPU.
void check_together(const std::vector<OpCase>& cases, Where where) {
  std::set<std::string> covered;
  for (const bool edges : {false, true}) {
    GraphBuilder builder(7);
    for (const OpCase& each : cases) {
      if (each.edges == edges) builder.output(each.name, each.apply(inputs_of(builder, each)));
    }
    if (!builder.graph().outputs.empty()) builder.check(where, kTolerance, edges);
    note_covered(builder.graph(), covered);
  }
  report_covered(covered);
}

TEST(Forward, pointwise_on_webgpu) { check_together(pointwise_cases(), Where::kWebGpu); }
TEST(Forward, views_on_webgpu) { check_together(view_cases(), Where::kWebGpu); }
TEST(Forward, reductions_on_webgpu) { check_together(reduce_cases(), Where::kWebGpu); }
TEST(Forward, products_on_webgpu) { check_together(matmul_cases(), Where::kWebGpu); }
TEST(Forward, indexed_on_webgpu) { check_together(index_cases(), Where::kWebGpu); }
TEST(Forward, scans_and_sorts_on_webgpu) { check_together(scan_cases(), Where::kWebGpu); }
TEST(Forward, composites_on_webgpu) { check_together(composite_cases(), Where::kWebGpu); }
TEST(Forward, convolutions_on_webgpu) { check_together(conv_cases(), Where::kWebGpu); }
TEST(Forward, pools_on_webgpu) { check_together(pool_cases(), Where::kWebGpu); }
TEST(Forward, functions_on_webgpu) { check_together(function_cases(), Where::kWebGpu); }
TEST(Forward, arranging_on_webgpu) { check_together(arranging_cases(), Where::kWebGpu); }
TEST(Forward, attention_on_webgpu) { check_together(attention_cases(), Where::kWebGpu); }
TEST(Forward, state_spaces_on_webgpu) { check_together(state_space_cases(), Where::kWebGpu); }
TEST(Forward, integers_on_webgpu) { check_together(integer_cases(), Where::kWebGpu); }
TEST(Forward, random_on_webgpu) { check_together(random_cases(), Where::kWebGpu); }
TEST(Forward, pointwise_on_webgpu_default_limits) {
  check_together(pointwise_cases(), Where::kWebGpuDefaultLimits);
}
TEST(Forward, structured_on_webgpu_default_limits) {
  std::vector<OpCase> cases;
  for (const auto& part :
       {view_cases(), reduce_cases(), matmul_cases(), composite_cases(), index_cases(),
        conv_cases(), pool_cases(), scan_cases(), function_cases(), arranging_cases(),
        attention_cases(), integer_cases(), random_cases()}) {
    cases.insert(cases.end(), part.begin(), part.end());
  }
  check_together(cases, Where::kWebGpuDefaultLimits);
}
// Limits change the kernels of large scans only, and a software driver takes seconds to compile
// one. Differences cannot check large scans, so those are the cases not differentiated.
TEST(Forward, large_scans_with_default_limits_on_webgpu) {
  std::vector<OpCase> cases = state_space_cases();
  std::erase_if(cases, [](const OpCase& each) { return each.differentiable; });
  check_together(cases, Where::kWebGpuDefaultLimits);
}
TEST(Forward, small_scans_with_default_limits_on_webgpu) {
  std::vector<OpCase> cases = state_space_cases();
  std::erase_if(
      cases, [](const OpCase& each) { return each.name != "ssd" && each.name != "rotary_scan"; });
  check_together(cases, Where::kWebGpuDefaultLimits);
}

void check_leaves(Where where) {
  GraphBuilder s(3);
  const Tensor parameter =
      s.leaf(ops::parameter, "p", {3, 2}, f32, s.draw.values(f32, 6, -1, 1), 64);
  const Tensor state = s.leaf(ops::state, "state", {3, 2}, f32, s.draw.values(f32, 6, -1, 1));
  const Tensor data = s.leaf(ops::data, "data", {3, 2}, i32, s.draw.values(i32, 6, -50, 50));
  const Tensor bits = s.leaf(ops::input, "bits", {3, 2}, boolean, {1, 0, 0, 1, 1, 0});
  const Tensor scalar = s.leaf(ops::scalar, "rate", {}, f32, {0.125});
  s.output("sum",
           parameter * state * scalar + cast(data, f32) + tensorgrad::where(bits, 10.0, 20.0));
  s.output("same", parameter);
  s.output("turned", transpose(data));
  s.check(where);
}

TEST(Leaves, of_all_kinds_are_read_on_cpu) { check_leaves(Where::kCpu); }
TEST(Leaves, of_all_kinds_are_read_on_webgpu) { check_leaves(Where::kWebGpu); }

void check_arena(Where where) {
  GraphBuilder s(3);
  const Values values = s.draw.values(f32, 128, -1, 1);
  const Tensor arena = s.leaf(ops::arena, "params", {128}, f32, values);
  s.graph().updates.push_back({arena.id(), (arena * 0.5 + 1.0).id()});
  s.check(where);
}
TEST(Leaves, arena_is_updated_in_one_piece) { check_arena(Where::kCpu); }
TEST(Leaves, arena_is_updated_in_one_piece_on_webgpu) { check_arena(Where::kWebGpu); }

// Reads the frozen first half of the arena by name and updates the second half in place.
void check_part_of_an_arena(Where where) {
  GraphBuilder s(4);
  const Values values = s.draw.values(f32, 128, -1, 1), other = s.draw.values(f32, 128, -1, 1);
  const Tensor frozen = s.leaf(ops::parameter, "frozen", {128}, f32, other, 0);
  const Tensor arena = s.leaf(ops::arena, "params", {128}, f32, values, 128);
  s.graph().updates.push_back({arena.id(), (arena * 0.5 + sum(frozen)).id()});
  s.output("read", frozen * 2);
  s.check(where);
}
TEST(Leaves, part_of_an_arena_is_updated_in_one_piece_on_cpu) {
  check_part_of_an_arena(Where::kCpu);
}
TEST(Leaves, part_of_an_arena_is_updated_in_one_piece_on_webgpu) {
  check_part_of_an_arena(Where::kWebGpu);
}

TEST(Coverage, every_op_has_a_case) {
  std::set<const OpDef*> seen;
  for (const OpCase& each : all_cases()) {
    GraphBuilder builder;
    static_cast<void>(each.apply(inputs_of(builder, each)));
    for (const Node& node : builder.graph().nodes) seen.insert(node.op);
  }
  // Leaves.are_read and Leaves.arena_is_updated cover these; the tests Checkpoint, CustomGradient
  // and Custom cover those from barrier on, and ShardedParameters covers reduce_scatter.
  for (const OpDef* op :
       {&ops::parameter, &ops::arena, &ops::data, &ops::state, &ops::scalar, &ops::reduce_scatter,
        &ops::barrier, &ops::checkpoint, &ops::custom_gradient, &ops::custom})
    seen.insert(op);
  std::string differentiable;
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(seen.contains(op)) << op->name << " has no case";
    const bool by_decomposition = op->kind == OpKind::kOpaque && op->expand != nullptr &&
                                  op != &ops::topk_indices;  // returns integers
    if (op->grad != nullptr || by_decomposition) differentiable += std::string(op->name) + " ";
  }
  RecordProperty("differentiable", differentiable);
}

// For tools/ops_page.py: records which functions take floats, and which of them return floats.
TEST(Coverage, functions_of_floats_are_classified) {
  std::set<std::string> taking, making;
  for (const OpCase& each : all_cases()) {
    const bool takes = std::any_of(each.args.begin(), each.args.end(),
                                   [](const Argument& arg) { return arg.dtype == f32; });
    if (!takes) continue;
    GraphBuilder builder;
    const bool makes = each.apply(inputs_of(builder, each)).dtype() == f32;
    for (const Node& node : builder.graph().nodes) {
      if (node.origin.empty()) continue;
      taking.insert(node.origin);
      if (makes) making.insert(node.origin);
    }
  }
  EXPECT_TRUE(making.contains("softmax") && !making.contains("any") && taking.contains("any"));
  const auto listed = [](const std::set<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += name + " ";
    return list;
  };
  RecordProperty("takes_floats", listed(taking));
  RecordProperty("makes_floats", listed(making));
}

TEST(Coverage, every_gradient_rule_is_checked) {
  // Differences cannot see that a gradient stops; Gradient.stops_at_detach tests that.
  // Checkpoint.may_be_nested tests the rule of barrier. The rule of custom only reports that it has
  // none.
  std::set<const OpDef*> checked = {&ops::detach, &ops::barrier, &ops::custom};
  for (const OpCase& each : all_cases()) {
    if (!each.differentiable) continue;
    GraphBuilder builder;
    const Tensor y = each.apply(inputs_of(builder, each));
    if (y.dtype() != f32) continue;
    for (const Node& node : builder.graph().nodes) checked.insert(node.op);
  }
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(op->grad == nullptr || checked.contains(op))
        << op->name << " has an unchecked gradient";
  }
}

}  // namespace
}  // namespace tensorgrad::testing
