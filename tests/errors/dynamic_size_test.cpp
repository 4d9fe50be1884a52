// SPDX-License-Identifier: MIT
// Mistakes with inputs of a dynamic size.
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(DynamicSizeErrors, input_with_two_dynamic_sizes) {
  EXPECT_ERROR(compiled_function(predict, {kDynamic, kDynamic, 3}), ShapeError,
               "input 'x': [?,?,3] has several dynamic sizes; only one can be inferred");
}

TEST(DynamicSizeErrors, element_count_not_a_multiple) {
  auto forward = compiled_function(predict, {kDynamic, 3});
  EXPECT_ERROR(forward({{"x", std::vector<float>(7)}}), ShapeError,
               "input 'x': expected a multiple of 3 elements for [?,3], got 7");
}

TEST(DynamicSizeErrors, first_size_zero) {
  EXPECT_ERROR(
      compile_function(Net{}, predict, {.inputs = {{"x", {kDynamic, 3}}}, .dynamic_size = 0}),
      UserError,
      "FunctionOptions: dynamic_size and max_cached_sizes must be at least 1, got 0 and 8");
}

TEST(DynamicSizeErrors, sizes_differ) {
  const auto added = [](const Net&, In in) { return in["x"] + in["y"]; };
  auto forward = compile_function(
      Net{}, added,
      {.inputs = {{"x", {kDynamic, 1}}, {"y", {kDynamic, 3}}}, .device = {.kind = "cpu"}});
  const std::vector<float> x(2), y(9);
  EXPECT_ERROR(forward({{"x", x}, {"y", y}}), ShapeError,
               "inputs 'x' [?,1] and 'y' [?,3] have different dynamic sizes: 2 and 3");
}

TEST(DynamicSizeErrors, sizes_differ_in_step) {
  auto trainer = compiled(plain_loss, {.inputs = {{"x", {kDynamic, 3}}, {"y", {kDynamic, 2}}}});
  const std::vector<float> x(12), y(6);
  EXPECT_ERROR(trainer.step({{"x", x}, {"y", y}}), ShapeError,
               "inputs 'x' [?,3] and 'y' [?,2] have different dynamic sizes: 4 and 3");
}

TEST(DynamicSizeErrors, state_shape_depends_on_size) {
  const auto kept = [](const Net&, In in) {
    const Tensor last = state("last", in["x"].shape(), 0.0);
    set_state("last", in["x"]);
    return last;
  };
  const auto run = [&] {
    auto forward = FAULTY(compiled_function(kept, {kDynamic, 3}));
    forward({{"x", std::vector<float>(6)}});
  };
  EXPECT_ERROR(
      run(), UserError,
      StartsWith("state 'last' is f32[2,3] for a dynamic size of 2, but not for one of 1; "));
}

TEST(DynamicSizeErrors, bind_input_of_dynamic_size) {
  auto trainer = compiled(plain_loss, {.inputs = {{"x", {kDynamic, 3}}, {"y", {kDynamic, 2}}}});
  EXPECT_ERROR(trainer.bind_input("x", nullptr), UserError,
               "bind_input: not supported for a dynamic size, as each size has its own buffers");
}

TEST(DynamicSizeErrors, dataset_of_dynamic_size) {
  EXPECT_ERROR(compiled(plain_loss, {.dataset = {{"x", {kDynamic, 3}}, {"y", {8, 2}}}, .batch = 4}),
               UserError,
               "dataset: 'x' has a dynamic size; only inputs passed to each step can have one");
}

TEST(DynamicSizeErrors, graph_without_dynamic_size) {
  const auto forward = compiled_function(predict);
  EXPECT_ERROR(forward.graph(GraphStage::kTraced, 5), UserError,
               "graph: a dynamic size is given, but no input has one");
}

}  // namespace tensorgrad::testing
