// SPDX-License-Identifier: MIT
// Mistakes with models, their parameters and buffers, and initial values.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(ParameterErrors, size_invalid) {
  EXPECT_ERROR(Parameter({1 << 16, 1 << 16}), ShapeError,
               "parameter: [65536,65536] has more than 2^31-1 elements, the limit of a tensor");
  EXPECT_ERROR(Parameter({0, 2}), ShapeError,
               "parameter: every size must be at least 1, got [0,2]");
}

TEST(ParameterErrors, too_few_values) {
  EXPECT_ERROR(Parameter({3}, init::literal({1, 2})), ShapeError,
               "parameter: [3] has 3 elements, got 2 values");
}

TEST(ParameterErrors, not_named_in_tg_module) {
  struct Forgetful {
    nn::Linear fc{3, 2};
    Parameter scale{{2}};
    TG_MODULE(fc)
  };
  const auto loss = [](const Forgetful& net, In in) {
    const Tensor y = net.fc(in["x"]);
    return mean(FAULTY(y * net.scale));
  };
  EXPECT_ERROR(compiled_model(Forgetful{}, loss), UserError,
               "parameter [2] is not part of the traced model: name its field in the TG_MODULE of "
               "its struct, and use the model passed to the traced function");
}

TEST(ParameterErrors, name_repeated) {
  struct Doubled {
    Parameter a{{2}};
    Parameter b{{2}};
    void visit_fields(ParameterVisitor& visitor) const {
      visitor.parameter("a", a);
      visitor.parameter("a", b);
    }
  };
  const auto loss = [](const Doubled& net, In) { return sum(net.a) + sum(net.b); };
  EXPECT_ERROR(compiled_model(Doubled{}, loss), UserError, "model: two parameters are named 'a'");
}

TEST(ParameterErrors, more_elements_than_device_takes) {
  struct Huge {
    nn::Linear in{40000, 40000, false}, out{40000, 40000, false};
    TG_MODULE(in, out)
  };
  const auto loss = [](const Huge& net, In in) { return mean(net.out(net.in(in["x"]))); };
  const CompileOptions options{
      .inputs = {{"x", {1, 40000}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}};
  EXPECT_ERROR(compile(Huge{}, loss, options), UserError,
               "compile: the model has 3200000000 parameters, a device takes at most 2147483647; "
               "use a smaller model, or trace() to inspect this one");
}

TEST(ModelErrors, no_parameters) {
  const auto loss = [](const nn::ReLU&, In in) { return sum(in["x"]); };
  EXPECT_ERROR(compiled_model(nn::ReLU{}, loss), UserError, "compile: the model has no parameters");
}

TEST(ModelErrors, module_contains_itself) {
  struct Ring {
    Parameter weight{{2}};
    std::shared_ptr<Ring> next;
    TG_MODULE(weight, next)
  };
  auto ring = std::make_shared<Ring>();
  ring->next = ring;
  const std::shared_ptr<void> opened(nullptr, [&](void*) { ring->next.reset(); });
  const auto loss = [](const Ring& net, In) { return sum(net.weight); };
  EXPECT_ERROR(compiled_model(*ring, loss), UserError, "model: the module 'next' contains itself");
}

TEST(BufferErrors, f16_in_training) {
  struct HalfBuffer {
    nn::Linear fc{3, 2};
    Buffer kept{{3}, 0, f16};
    TG_MODULE(fc, kept)
  };
  const auto loss = [](const HalfBuffer& net, In in) {
    return sum(net.fc(in["x"] * FAULTY(net.kept.tensor(Loc::current()))));
  };
  EXPECT_ERROR(compiled_model(HalfBuffer{}, loss), DtypeError,
               "buffer 'kept': f16 is not supported in training");
}

TEST(BufferErrors, set_to_another_shape) {
  struct Counting {
    nn::Linear fc{3, 2};
    Buffer count{{2}};
    TG_MODULE(fc, count)
  };
  const auto loss = [](const Counting& net, In) {
    FAULTY(net.count.set(zeros({3}), Loc::current()));
    return sum(net.count.tensor());
  };
  EXPECT_ERROR(compiled_model(Counting{}, loss), ShapeError, "buffer: expected f32[2], got f32[3]");
}

TEST(BufferErrors, not_named_in_tg_module) {
  struct Forgetful {
    nn::Linear fc{3, 2};
    Buffer count{{2}};
    TG_MODULE(fc)
  };
  const auto loss = [](const Forgetful& net, In) {
    return FAULTY(sum(net.count.tensor(Loc::current())));
  };
  EXPECT_ERROR(compiled_model(Forgetful{}, loss), UserError,
               StartsWith("buffer [2] is not part of the traced model: name its field in "));
}

TEST(BufferErrors, name_taken_by_optimizer) {
  struct Inner {
    Buffer m{{2}};
    TG_MODULE(m)
  };
  struct Outer {
    nn::Linear fc{3, 2};
    Inner optim;
    TG_MODULE(fc, optim)
  };
  const auto loss = [](const Outer& net, In in) { return sum(net.fc(in["x"])); };
  EXPECT_ERROR(
      compiled_model(Outer{}, loss), UserError,
      "model: the buffer name 'optim.m' is taken by another tensor of the model or the optimizer");
}

TEST(InitErrors, fans_of_vector) {
  EXPECT_ERROR(init::fans({3}), ShapeError,
               "fans: expected a weight [out, in, ..] with at least two axes, got [3]");
}

TEST(InitErrors, orthogonal_vector) {
  EXPECT_ERROR(Parameter({3}, init::orthogonal()), ShapeError,
               "parameter: init::orthogonal requires at least two axes, got [3]");
}

TEST(InitErrors, orthogonal_bias) {
  CompileOptions options;
  options.initial = [](const std::string&, const Shape&) { return init::orthogonal(); };
  EXPECT_ERROR(
      compiled(plain_loss, options), ShapeError,
      "the initial values of 'fc.bias': init::orthogonal requires at least two axes, got [2]");
}

TEST(InitErrors, element_count_differs) {
  CompileOptions options;
  options.initial = [](const std::string&, const Shape&) {
    return init::literal({1, 2, 3, 4, 5, 6});
  };
  EXPECT_ERROR(compiled(plain_loss, options), ShapeError,
               "the initial values of 'fc.bias': [2] has 2 elements, got 6 values");
}

TEST(InitErrors, shape_differs) {
  FunctionOptions options{.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}};
  options.initial = [](const std::string&, const Shape& shape) {
    const std::vector<float> values(static_cast<std::size_t>(numel(shape)));
    return init::literal(HostTensor::from({numel(shape)}, values));
  };
  EXPECT_ERROR(compile_function(Net{}, predict, options), ShapeError,
               "the initial values of 'fc.weight': expected [2,3], got [6]");
}

TEST(InitErrors, integer_values) {
  CompileOptions options;
  options.initial = [](const std::string&, const Shape& shape) {
    const std::vector<std::int32_t> values(static_cast<std::size_t>(numel(shape)));
    return FAULTY(init::literal(HostTensor::from(shape, values)));
  };
  EXPECT_ERROR(compiled(plain_loss, options), DtypeError,
               "literal: expected f32 or f16 for a parameter, got i32");
}

}  // namespace tensorgrad::testing
