// SPDX-License-Identifier: MIT
// Tensors printed each time a function runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct OneWeight {
  Parameter w{{2}, init::ones()};
  TG_MODULE(w)
};

Tensor printing_loss(const OneWeight& net, const Inputs& in) {
  const Tensor product = print(net.w * in["x"], "product");
  return sum(capture("twice", product * 2));
}

CompileOptions options_of(const char* device) {
  return {.inputs = {{"x", {2}}},
          .optimizer = optim::SGD{.lr = 1},
          .device = {.kind = device, .allow_software = true}};
}

template <class Work>
std::string printed(Work&& work) {
  ::testing::internal::CaptureStderr();
  work();
  return ::testing::internal::GetCapturedStderr();
}

void expect_each_step(const char* device) {
  auto trainer = compile(OneWeight{}, printing_loss, options_of(device));
  const Feed x = {{"x", std::vector<float>{0.5F, 2}}};
  EXPECT_EQ(printed([&] { trainer.step(x); }), "product = f32[2] {0.5, 2}\n");
  StepResult second;  // the weights were 0 and -3
  EXPECT_EQ(printed([&] { second = trainer.step(x, {.captures = {"twice"}}); }),
            "product = f32[2] {0, -6}\n");
  EXPECT_EQ(second.captures.size(), 1U);
  EXPECT_THAT(second.captures.at("twice").floats(), ElementsAre(0, -12));
}
TEST(Print, shows_each_step_on_cpu) { expect_each_step("cpu"); }
TEST(Print, shows_each_step_on_webgpu) { expect_each_step("webgpu"); }

TEST(Print, shows_each_step_of_a_run) {
  CompileOptions options = options_of("cpu");
  options.inputs = {};
  options.dataset = {{"x", {1, 2}}};
  options.batch = 1;
  auto loss = [](const OneWeight& net, const Inputs& in) {
    return sum(print(net.w * in["x"][0], "product"));
  };
  auto trainer = compile(OneWeight{}, loss, options);
  trainer.upload_data("x", std::vector<float>{0.5F, 2});
  EXPECT_EQ(printed([&] { EXPECT_THAT(trainer.run(2), ElementsAre(2.5F, -1.75F)); }),
            "product = f32[2] {0.5, 2}\nproduct = f32[2] {0.25, -2}\n");
  const auto refused = [&](auto&& call) {
    try {
      call();
      return std::string("nothing was thrown");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refused([&] { trainer.submit(1); }),
              HasSubstr("submit: not supported with print(); call step()"));
  EXPECT_THAT(refused([&] { trainer.step_for(0.001); }),
              HasSubstr("step_for: not supported with print(); call step()"));
}

TEST(Print, shows_each_call_of_a_function) {
  auto twice = compile_function([](const Inputs& in) { return print(in["x"] * 2, "y") + 1; },
                                {.inputs = {{"x", {kDynamic}}}, .device = {.kind = "cpu"}});
  EXPECT_EQ(printed([&] {
              EXPECT_THAT(twice({{"x", std::vector<float>{1, 2}}}).floats(), ElementsAre(3, 5));
            }),
            "y = f32[2] {2, 4}\n");
  EXPECT_EQ(printed([&] { twice.run({{"x", std::vector<float>{3}}}); }), "y = f32[1] {6}\n");
}

TEST(Print, repeated_name_is_rejected) {
  const auto loss = [](const OneWeight& net, const Inputs&) {
    return sum(print(capture("w", net.w), "w"));
  };
  try {
    trace(OneWeight{}, loss, {});
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("print: the name 'w' is taken by a capture"));
  }
}

TEST(Print, stream_of_a_traced_tensor_shows_its_type) {
  std::ostringstream text;
  compile_function(
      [&](const Inputs& in) {
        text << in["x"] << ' ' << (in["x"] > 0)[0] << ' ' << sum(cast(in["x"], i32));
        return in["x"] + 0.0;
      },
      {.inputs = {{"x", {2, 3}}}, .device = {.kind = "cpu"}});
  EXPECT_EQ(text.str(), "f32[2,3] bool[3] i32[]");
}

}  // namespace
}  // namespace tensorgrad::testing
