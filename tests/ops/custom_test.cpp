// SPDX-License-Identifier: MIT
// User-defined ops: both backends against double, gradients, element types, views as inputs, and
// the errors if a part is missing or wrong.
#include <cmath>
#include <stdexcept>

#include <gmock/gmock.h>

#include "support/graph_builder.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

const CustomOp& hypotenuse() {
  static const CustomOp op({
      .name = "hypotenuse",
      .infer = [](const std::vector<TensorType>& in) { return in[0]; },
      .cpu =
          [](const CustomCall& c) {
            for (std::int64_t i = c.first; i < c.last; ++i) {
              const auto at = static_cast<std::size_t>(i);
              c.result()[at] = std::hypot(c.floats(0)[at], c.floats(1)[at]);
            }
          },
      .wgsl =
          [](const std::vector<TensorType>&) {
            return std::string(
                "fn element(i: u32) -> f32 { return length(vec2(in0(i), in1(i))); }");
          },
      .backward = [](const std::vector<Tensor>& in, Tensor y,
                     Tensor dy) { return std::vector<Tensor>{dy * in[0] / y, dy * in[1] / y}; },
  });
  return op;
}

// Sums the rows whose indices are listed: rows [N, D], list i32 [M] -> [M].
const CustomOp& picked_sums() {
  static const CustomOp op({
      .name = "picked_sums",
      .infer =
          [](const std::vector<TensorType>& in) {
            if (in.size() != 2) throw UserError("picked_sums: expected rows and a list");
            if (in[1].dtype != i32) throw DtypeError("the list must be i32");
            return TensorType{in[1].shape, f32};
          },
      .cpu =
          [](const CustomCall& c) {
            const std::int64_t width = c.shape(0)[1];
            for (std::int64_t i = c.first; i < c.last; ++i) {
              float sum = 0;
              for (std::int64_t d = 0; d < width; ++d) {
                const std::int64_t row = c.ints(1)[static_cast<std::size_t>(i)];
                sum += c.floats(0)[static_cast<std::size_t>(row * width + d)];
              }
              c.result()[static_cast<std::size_t>(i)] = sum;
            }
          },
      .wgsl =
          [](const std::vector<TensorType>& in) {
            const std::string width = std::to_string(in[0].shape[1]) + "u";
            return "fn row_sum(r: u32) -> f32 {\n  var sum = 0.0f;\n  for (var d = 0u; d < " +
                   width + "; d++) { sum += in0(r * " + width + " + d); }\n  return sum;\n}\n" +
                   "fn element(i: u32) -> f32 { return row_sum(u32(in1(i))); }";
          },
  });
  return op;
}

class Custom : public ::testing::TestWithParam<Where> {};

INSTANTIATE_TEST_SUITE_P(cpu, Custom, ::testing::Values(Where::kCpu));
INSTANTIATE_TEST_SUITE_P(webgpu, Custom, ::testing::Values(Where::kWebGpu));

TEST_P(Custom, computes_on_tensors_and_views_of_them) {
  GraphBuilder s;
  const Tensor a = s.input({3, 500}, 1, 2), b = s.input({500, 3}, 1, 2);
  s.output("plain", hypotenuse()({a, reshape(b, {3, 500})}));
  s.output("views", exp(-hypotenuse()({a * 2.0, transpose(b)})));
  s.output("padded", hypotenuse()({pad(a, {2, 1}, 1.0), broadcast_to(sum(b), {3, 503})}));
  s.check(GetParam());
}

TEST_P(Custom, uses_its_own_gradient) {
  GraphBuilder s;
  const Tensor a = s.input({7}, 1, 2), b = s.input({7}, 1, 2);
  const std::vector<Tensor> d = grad(sum(square(hypotenuse()({a, b}))), {a, b});
  s.output("da", d[0]);  // d/da of the sum of a^2 + b^2
  s.output("want", 2.0 * a);
  s.output("second", grad(sum(d[1] * d[1]), {b})[0]);
  s.output("second_want", 8.0 * b);
  const ValueMap got = run_graph(s.graph(), s.leaves, GetParam());
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_NEAR(got.at("da")[i], got.at("want")[i], 1e-5);
    EXPECT_NEAR(got.at("second")[i], got.at("second_want")[i], 1e-4);
  }
}

TEST_P(Custom, reads_any_element) {
  GraphBuilder s;
  const Tensor rows = s.input({5, 4});
  s.output("sums", picked_sums()({rows, s.input({6}, i32, {4, 0, 0, 2, 3, 4})}));
  s.check(GetParam());
}

TEST(CustomOps, read_zero_beyond_the_end_on_webgpu) {
  GraphBuilder s;
  const Tensor rows = s.input({2, 2}, f32, {1, 2, 3, 4});
  s.output("sums", picked_sums()({rows, s.input({3}, i32, {1, 7, -1})}));
  EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kWebGpu).at("sums"), (Values{7, 0, 0}));
}

TEST(CustomOps, train) {
  struct Net {
    Parameter w{{4}, init::constant(1)};
    TG_MODULE(w)
  };
  auto trainer = compile(
      Net(), [](const Net& net, const Inputs& in) { return mean(hypotenuse()({net.w, in["x"]})); },
      {.inputs = {{"x", {4}}}, .optimizer = optim::SGD{.lr = 0.4}, .device = {.kind = "cpu"}});
  const std::vector<float> x = {1, 1, 1, 1};
  const double first = trainer.step({{"x", x}}).loss;
  for (int i = 0; i < 100; ++i) static_cast<void>(trainer.step({{"x", x}}));
  EXPECT_NEAR(first, std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(trainer.step({{"x", x}}).loss, 1.0, 1e-3);
}

// Returns the message of the exception that `action` throws.
template <class Action>
std::string thrown(const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

TEST(CustomOps, errors_name_what_is_missing) {
  const auto infer = [](const std::vector<TensorType>& in) { return in[0]; };
  EXPECT_THAT(thrown([&] { CustomOp({.name = "", .infer = infer}); }),
              ::testing::HasSubstr("CustomOp: the name is empty"));
  EXPECT_THAT(thrown([&] { CustomOp({.name = "none"}); }),
              ::testing::HasSubstr("CustomOp 'none': infer is missing"));
  EXPECT_THAT(thrown([&] { CustomOp({.name = "none", .infer = infer}); }),
              ::testing::HasSubstr("CustomOp 'none': expected a cpu or wgsl body"));
  const CustomOp shader({.name = "shader", .infer = infer, .wgsl = [](const auto&) {
                           return std::string("fn element(i: u32) -> f32 { return in0(i); }");
                         }});
  GraphBuilder s;
  const Tensor x = s.input({3});
  s.output("y", shader({x}));
  EXPECT_THAT(thrown([&] { run_graph(s.graph(), s.leaves, Where::kCpu); }),
              ::testing::HasSubstr("custom op 'shader' has no CPU body"));
  EXPECT_THAT(thrown([&] { grad(sum(shader({x})), {x}); }),
              ::testing::HasSubstr("custom op 'shader' has no backward"));
  EXPECT_THAT(thrown([&] { shader({}); }), ::testing::HasSubstr("expected 1 to 7 inputs, got 0"));
  EXPECT_THAT(thrown([&] { picked_sums()({x, x}); }),
              ::testing::HasSubstr("picked_sums: the list must be i32"));
}

TEST(CustomOps, errors_contain_the_shader_message_on_webgpu) {
  const CustomOp wrong({.name = "wrong",
                        .infer = [](const std::vector<TensorType>& in) { return in[0]; },
                        .wgsl =
                            [](const auto&) {
                              return std::string(
                                  "fn element(i: u32) -> f32 { return nowhere(i); }");
                            }});
  GraphBuilder s;
  s.output("y", wrong({s.input({3})}));
  const std::string said = thrown([&] { run_graph(s.graph(), s.leaves, Where::kWebGpu); });
  EXPECT_THAT(said, ::testing::HasSubstr("kernel wrong was rejected"));
  EXPECT_THAT(said, ::testing::HasSubstr("nowhere"));
  EXPECT_THAT(said, ::testing::HasSubstr("custom_test.cpp"));
}

TEST(CustomOps, rethrow_errors_of_their_body) {
  const CustomOp failing({.name = "failing",
                          .infer = [](const std::vector<TensorType>& in) { return in[0]; },
                          .cpu =
                              [](const CustomCall& c) {
                                if (c.last > 3) throw std::runtime_error("too far");
                                static_cast<void>(c.ints(0));
                              }});
  const auto said = [&](std::int64_t size) {
    GraphBuilder s;
    s.output("y", failing({s.input({size})}));
    return thrown([&] { run_graph(s.graph(), s.leaves, Where::kCpu); });
  };
  EXPECT_THAT(said(4), ::testing::HasSubstr("too far"));
  EXPECT_THAT(said(3), ::testing::HasSubstr("input 0 is f32[3], requested as i32"));
}

}  // namespace
}  // namespace tensorgrad::testing
