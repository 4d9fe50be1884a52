// SPDX-License-Identifier: MIT
// TENSORGRAD_RETRACE finds host variables that change after a function was traced.
#include <cstdlib>

#include <gmock/gmock.h>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::HasSubstr;

struct RetracedNet {
  nn::Linear layer{3, 2};
  TG_MODULE(layer)
};

struct Retracing {
  Retracing() { setenv("TENSORGRAD_RETRACE", "1", 1); }
  Retracing(const Retracing&) = delete;
  Retracing& operator=(const Retracing&) = delete;
  ~Retracing() { unsetenv("TENSORGRAD_RETRACE"); }
};

struct Host {
  double factor = 1;
  int layers = 1;
  bool squared = false;
};

CompileOptions retraced_options() {
  return {
      .inputs = {{"x", {2, 3}}}, .optimizer = optim::Adam{.lr = 0.1}, .device = {.kind = "cpu"}};
}

Trainer<RetracedNet> retraced_trainer(const Host& host) {
  return compile(
      RetracedNet{},
      [&host](const RetracedNet& net, const Inputs& in) {
        Tensor y = dropout(net.layer(in["x"]), 0.5) * host.factor;
        for (int i = 0; i < host.layers; ++i) y = tanh(y);
        return mean(host.squared ? square(y) : abs(y));
      },
      retraced_options());
}

void expect_found(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "nothing was found";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr(text));
    EXPECT_THAT(error.what(), HasSubstr("retrace_test.cpp"));
  }
}

TEST(Retrace, names_the_op_that_a_host_variable_changed) {
  const Retracing on;
  Host host;
  auto trainer = retraced_trainer(host);
  const auto x = numbers(6, 1);
  trainer.step({{"x", x}});
  trainer.step({{"x", x}});
  host.factor = 2;
  expect_found([&] { trainer.step({{"x", x}}); }, "value=1 is now constant f32[] value=2");
  expect_found([&] { trainer.step_for(1, {{"x", x}}); }, "value=2");
  expect_found([&] { trainer.profile({{"x", x}}); }, "value=2");
  host.factor = 1;
  host.layers = 2;
  expect_found([&] { trainer.step({{"x", x}}); }, "the loss traces differently");
  host = {.squared = true};
  expect_found([&] { trainer.step({{"x", x}}); }, "abs");
  host = {};
  trainer.step({{"x", x}});
  EXPECT_EQ(trainer.steps(), 3);
}

TEST(Retrace, checks_functions) {
  const Retracing on;
  double factor = 1;
  auto function = compile_function([&](const Inputs& in) { return in["x"] * factor; },
                                   {.inputs = {{"x", {kDynamic}}}, .device = {.kind = "cpu"}});
  EXPECT_EQ(function({{"x", std::vector<float>{1, 2}}}).floats(), (std::vector<float>{1, 2}));
  factor = 3;
  expect_found([&] { function({{"x", std::vector<float>{1, 2, 3}}}); }, "the function traces");
  expect_found([&] { function.profile({{"x", std::vector<float>{1}}}); }, "the function traces");
}

TEST(Retrace, is_off_by_default) {
  Host host;
  auto trainer = retraced_trainer(host);
  host.factor = 2;
  trainer.step({{"x", numbers(6, 1)}});
}

}  // namespace
}  // namespace tensorgrad::testing
