// SPDX-License-Identifier: MIT
// Mistakes with inputs and outputs.
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(InputErrors, input_missing) {
  Example example;
  example.feed.erase("y");
  EXPECT_ERROR(example.trainer.step(example.feed), UserError,
               "input 'y' is missing; expected inputs: x, y, i");
}

TEST(InputErrors, unread_input_missing) {
  Example example;
  example.feed.erase("i");
  EXPECT_ERROR(example.trainer.step(example.feed), UserError,
               "input 'i' is missing; expected inputs: x, y, i");
}

TEST(InputErrors, name_unknown) {
  Example example;
  example.feed.insert({"z", example.x});
  EXPECT_ERROR(example.trainer.step(example.feed), UserError,
               "unknown input 'z'; available: x, y, i");
}

TEST(InputErrors, declared_twice) {
  EXPECT_ERROR(compiled(plain_loss, {.inputs = {{"x", {4, 3}}, {"x", {4, 2}}}}), UserError,
               "input 'x' is declared twice");
}

TEST(InputErrors, given_twice) {
  Example example;
  const std::initializer_list<FeedView::Entry> entries = {
      {"x", example.x}, {"y", example.y}, {FAULTY("x"), example.x}, {"i", example.i}};
  EXPECT_ERROR(example.trainer.step(entries), UserError, "input 'x' is given twice");
}

TEST(InputErrors, type_differs) {
  Example example;
  example.feed.insert_or_assign("i", example.y);
  EXPECT_ERROR(example.trainer.step(example.feed), DtypeError, "input 'i': expected i32, got f32");
}

TEST(InputErrors, integers_for_f16) {
  auto forward = compile_function(Net{}, [](const Net&, In in) { return in["x"] * 2.0; },
                                  {.inputs = {{"x", {2}, f16}}, .device = {.kind = "cpu"}});
  EXPECT_ERROR(forward({{"x", std::vector<std::int32_t>{1, 2}}}), DtypeError,
               "input 'x': expected f16, got i32");
}

TEST(InputErrors, shape_differs) {
  // The element count is right, but the shape is not.
  Example example;
  const HostTensor turned = HostTensor::from({3, 4}, example.x);
  example.feed.at("x") = turned;
  EXPECT_ERROR(example.trainer.step(example.feed), ShapeError,
               "input 'x': expected [4,3], got [3,4]");
}

TEST(InputErrors, too_few_elements) {
  Example example;
  example.feed.at("x").count = 11;
  EXPECT_ERROR(example.trainer.step(example.feed), ShapeError,
               "input 'x': [4,3] has 12 elements, got 11");
}

TEST(InputErrors, no_elements) {
  Example example;
  const std::vector<float> nothing;
  example.feed.insert_or_assign("x", nothing);
  EXPECT_ERROR(example.trainer.step(example.feed), ShapeError,
               "input 'x': [4,3] has 12 elements, got 0");
}

TEST(InputErrors, size_zero) {
  EXPECT_ERROR(compiled(plain_loss, {.inputs = {{"x", {0, 3}}}}), ShapeError,
               "input: every size must be at least 1, got [0,3]");
}

TEST(InputErrors, null_pointer) {
  Example example;
  example.feed.at("x") = HostView(f32, nullptr, 12);
  EXPECT_ERROR(example.trainer.step(example.feed), UserError,
               "input 'x': null pointer given for 12 elements");
}

TEST(InputErrors, name_reserved) {
  EXPECT_ERROR(compiled(plain_loss, {.inputs = {{"_order", {4, 3}}}}), UserError,
               "input names must not be empty or begin with '_', got '_order'");
}

TEST(InputErrors, nan_element) {
  auto trainer = compiled(plain_loss, {.detect_nan = true});
  Example example;
  example.x[2] = NAN;
  EXPECT_ERROR(trainer.step(example.feed), UserError,
               "step 1: the loss is nan; the first op to produce NaN or infinity is input 'x' "
               "(element 2 of f32[4,3] is nan)");
}

TEST(InputErrors, tensor_of_another_device) {
  Example example;
  auto forward = compiled_function([](const Net&, In in) { return in["x"] * 2.0; });
  const DeviceTensor x = forward.run_on_device({{"x", example.x}}).at("output");
  EXPECT_ERROR(example.trainer.step({{"x", x}, {"y", example.y}, {"i", example.i}}), UserError,
               StartsWith("input 'x': the tensor is on another device, "));
}

TEST(InputErrors, host_tensor_too_few_elements) {
  const std::vector<float> values(5);
  EXPECT_ERROR(HostTensor::from({2, 3}, values), ShapeError,
               "host tensor: [2,3] has 6 elements, got 5");
}

TEST(InputErrors, floats_of_integer_output) {
  auto forward = compile_function(Net{}, [](const Net&, In in) { return in["i"] + 1; },
                                  {.inputs = {{"i", {4}, i32}}, .device = {.kind = "cpu"}});
  EXPECT_ERROR_WITHOUT_LINE(forward(Feed{{"i", Example().i}}).floats(), DtypeError,
                            "floats: expected f32 or f16, got i32");
}

TEST(InputErrors, call_of_function_with_two_outputs) {
  const auto both = [](const Net& net, In in) {
    const Tensor y = net.fc(in["x"]);
    return std::map<std::string, Tensor>{{"y", y}, {"mean", mean(y)}};
  };
  auto forward = compiled_function(both);
  const Example example;
  EXPECT_ERROR(forward({{"x", example.x}}), UserError,
               "the function has 2 outputs, not one; use run()");
}

}  // namespace tensorgrad::testing
