// SPDX-License-Identifier: MIT
// Mistakes in traced functions.
#include <map>
#include <string>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(TraceErrors, op_outside_traced_function) {
  EXPECT_ERROR(full({2}, 1), UserError,
               "full: ops may only be called inside a traced function (one passed to compile, "
               "compile_function or attach)");
}

TEST(TraceErrors, autocast_outside_traced_function) {
  EXPECT_ERROR(Autocast(true), UserError,
               "Autocast: ops may only be called inside a traced function (one passed to compile, "
               "compile_function or attach)");
}

TEST(TraceErrors, trace_within_trace) {
  const auto loss = [](const Net& net, In in) {
    FAULTY(compiled(plain_loss));
    return plain_loss(net, in);
  };
  EXPECT_ERROR(compiled(loss), UserError,
               "compile, compile_function and attach may not be called inside a traced function");
}

TEST(TraceErrors, tensor_of_another_trace) {
  Tensor kept;
  compiled([&](const Net& net, In in) {
    kept = in["x"];
    return mean(net.fc(kept));
  });
  const auto loss = [&](const Net&, In) { return FAULTY(sum(exp(kept))); };
  EXPECT_ERROR(compiled(loss), UserError, "exp: the tensor belongs to another traced function");
}

TEST(TraceErrors, function_without_output) {
  const auto nothing = [](const Net&, In) { return std::map<std::string, Tensor>{}; };
  EXPECT_ERROR(compile_function(Net{}, nothing, {.device = {.kind = "cpu"}}), UserError,
               "the traced function returns no output");
}

TEST(TraceErrors, input_name_unknown) {
  const auto loss = [](const Net& net, In in) { return FAULTY(mean(net.fc(in["image"]))); };
  EXPECT_ERROR(compiled(loss), UserError, "unknown input 'image'; available: i, x, y");
}

using EmptyTensorErrors = Traced;

TEST_F(EmptyTensorErrors, argument_of_op) {
  EXPECT_ERROR(exp(Tensor{}), UserError, "exp: the tensor is empty (default-constructed)");
}

TEST_F(EmptyTensorErrors, argument_of_composite) {
  EXPECT_ERROR(mse(Tensor{}, y), UserError, "mse: the tensor is empty (default-constructed)");
}

TEST_F(EmptyTensorErrors, shape) {
  EXPECT_ERROR(Tensor().shape(), UserError, "shape: the tensor is empty (default-constructed)");
}

TEST(CaptureErrors, name_repeated) {
  const auto loss = [](const Net&, In in) {
    capture("h", in["x"]);
    return sum(FAULTY(capture("h", in["y"])));
  };
  EXPECT_ERROR(compiled(loss), UserError, "capture: capture 'h' already exists");
}

TEST(CaptureErrors, name_unknown) {
  Example example;
  EXPECT_ERROR(example.trainer.step(example.feed, {.captures = {"hidden"}}), UserError,
               "unknown capture 'hidden'; available: none");
}

TEST(CaptureErrors, name_taken_by_output) {
  const auto captured = [](const Net& net, In in) {
    return FAULTY(capture("output", net.fc(in["x"])));
  };
  Example example;
  EXPECT_ERROR(example.trainer.attach(captured, {.inputs = {{"x", {1, 3}}}}), UserError,
               "capture: the name 'output' is taken by an output");
}

using ScalarErrors = Traced;

TEST_F(ScalarErrors, name_reserved) {
  EXPECT_ERROR(scalar("_lr", 1), UserError,
               "scalar: a name must not be empty or begin with '_', got '_lr'");
}

TEST_F(ScalarErrors, initial_values_differ) {
  scalar("beta", 0.5);
  EXPECT_ERROR(scalar("beta", 0.25), UserError,
               "scalar: 'beta' already has the initial value 0.5, got 0.25");
}

using StateErrors = Traced;

TEST_F(StateErrors, set_to_another_type) {
  state("count", {});
  EXPECT_ERROR(set_state("count", x), ShapeError, "set_state: 'count' is f32[], got f32[4,3]");
}

TEST_F(StateErrors, f16_state) {
  EXPECT_ERROR(state("kept", {3}, 0, f16), DtypeError,
               "state: expected f32, i32, u32 or bool, got f16");
}

TEST_F(StateErrors, name_unknown) {
  EXPECT_ERROR(set_state("count", sum(x)), UserError, "set_state: unknown state 'count'");
}

TEST_F(StateErrors, set_twice) {
  const Tensor count = state("count", {});
  set_state("count", count + 1.0);
  EXPECT_ERROR(set_state("count", count + 2.0), UserError, "set_state: 'count' is set twice");
}

TEST_F(StateErrors, name_repeated) {
  state("count", {});
  EXPECT_ERROR(state("count", {}), UserError, "state: state 'count' already exists");
}

TEST_F(StateErrors, name_reserved) {
  EXPECT_ERROR(
      state("optim.exp_avg", {}), UserError,
      "state: a name must not be empty or begin with '_' or 'optim.', got 'optim.exp_avg'");
}

using CustomGradientErrors = Traced;

TEST_F(CustomGradientErrors, too_few_gradients) {
  const auto twice = [](const std::vector<Tensor>& in) { return in[0] * 2.0; };
  const auto backward = [](const std::vector<Tensor>&, Tensor, Tensor) {
    return std::vector<Tensor>{};
  };
  EXPECT_ERROR(
      custom_gradient({x}, twice, backward), UserError,
      "custom_gradient: backward must return one gradient for each of the 1 inputs, got 0");
}

TEST_F(CustomGradientErrors, gradient_shape_differs) {
  const auto twice = [](const std::vector<Tensor>& in) { return in[0] * 2.0; };
  const auto backward = [](const std::vector<Tensor>&, Tensor, Tensor dy) {
    return std::vector<Tensor>{sum(dy)};
  };
  EXPECT_ERROR(custom_gradient({x}, twice, backward), ShapeError,
               "custom_gradient: the gradient of input 0 must be f32[4,3], got f32[]");
}

TEST(LossErrors, f16_loss) {
  const auto loss = [](const Net& net, In in) { return FAULTY(sum(cast(net.fc(in["x"]), f16))); };
  EXPECT_ERROR(compiled(loss), DtypeError, "gradient: the loss must be f32, got f16[]");
}

TEST(LossErrors, integer_loss) {
  const auto loss = [](const Net&, In in) { return FAULTY(sum(in["i"])); };
  EXPECT_ERROR(compiled(loss), DtypeError, "gradient: the loss must be f32, got i32[]");
}

TEST(LossErrors, loss_not_scalar) {
  const auto loss = [](const Net& net, In in) { return FAULTY(net.fc(in["x"]) * 2.0); };
  EXPECT_ERROR(compiled(loss), ShapeError,
               "gradient: the loss must be a scalar, got [4,2]; reduce it with mean() or sum()");
}

TEST(LossErrors, loss_without_gradient) {
  const auto accuracy = [](const Net& net, In in) {
    const Tensor right = cast(eq(argmax(net.fc(in["x"]), 1), in["i"]), f32);
    return FAULTY(mean(right));
  };
  EXPECT_ERROR(compiled(accuracy), UserError,
               "compile: the loss has no gradient with respect to any parameter");
}

}  // namespace tensorgrad::testing
