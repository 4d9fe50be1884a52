// SPDX-License-Identifier: MIT
// Initial values from a function of name and shape.
#include <gmock/gmock.h>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

struct Pair {
  nn::Linear first{3, 2}, second{2, 1};
  TG_MODULE(first, second)
};
Tensor pair_of(const Pair& net, const Inputs& in) { return net.second(net.first(in["x"])); }
Tensor pair_loss(const Pair& net, const Inputs& in) { return mean(square(pair_of(net, in))); }

std::vector<float> sixths(int asked) {
  std::vector<float> values;
  for (int i = 0; i < 6; ++i) values.push_back(static_cast<float>(i + 10 * asked));
  return values;
}

CompileOptions pair_options(const InitFunction& initial) {
  CompileOptions options;
  options.inputs = {{"x", {4, 3}}};
  options.optimizer = optim::SGD{.lr = 0.1};
  options.seed = 5;
  options.initial = initial;
  options.device = {.kind = "cpu"};
  return options;
}

TEST(InitFunction, is_called_for_every_parameter_and_may_return_none) {
  std::vector<std::string> seen;
  int asked = 0;
  const InitFunction initial = [&](const std::string& name,
                                   const Shape& shape) -> std::optional<Init> {
    seen.push_back(name + to_string(shape));
    if (name == "first.weight") return init::literal(sixths(asked++));
    if (name.ends_with(".bias")) return init::constant(0.25);
    return {};
  };
  auto usual = compile(Pair{}, pair_loss, pair_options({}));
  auto given = compile(Pair{}, pair_loss, pair_options(initial));
  EXPECT_THAT(seen, ElementsAre("first.weight[2,3]", "first.bias[2]", "second.weight[1,2]",
                                "second.bias[1]"));
  auto params = given.download_params();
  EXPECT_EQ(params.at("first.weight").floats(), sixths(0));
  EXPECT_THAT(params.at("first.bias").floats(), Each(0.25F));
  EXPECT_THAT(params.at("second.bias").floats(), Each(0.25F));
  // If the function returns nothing, the parameter is drawn as without the function.
  EXPECT_EQ(params.at("second.weight").bytes, usual.download_params().at("second.weight").bytes);

  given.step({{"x", std::vector<float>(12, 1)}});
  EXPECT_NE(given.download_params().at("first.weight").floats(), sixths(0));
  given.reset();  // calls the function again
  EXPECT_EQ(given.download_params().at("first.weight").floats(), sixths(1));
}

TEST(InitFunction, works_for_functions_and_several_objectives) {
  const InitFunction initial = [](const std::string& name, const Shape& shape) {
    if (name == "first.weight")
      return init::literal(HostTensor::from({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}));
    return init::normal(static_cast<double>(shape.size()), 0);
  };
  CompiledFunction forward = compile_function(
      Pair{}, pair_of, {.inputs = {{"x", {1, 3}}}, .device = {.kind = "cpu"}, .initial = initial});
  // second(first(1, 1, 1)) = 2 * ((6 + 1) + (15 + 1)) + 1
  EXPECT_THAT(forward({{"x", std::vector<float>{1, 1, 1}}}).floats(), ElementsAre(47));
  CompileOptions options;
  options.inputs = {{"x", {4, 3}}};
  options.optimizer = optim::SGD{.lr = 0.1};
  auto trainer = compile(Pair{},
                         {{.name = "a", .loss = pair_loss, .options = options},
                          {.name = "b", .loss = pair_loss, .options = options}},
                         {.device = {.kind = "cpu"}, .initial = initial});
  EXPECT_THAT(trainer.download_params().at("first.weight").floats(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(trainer.download_params().at("second.weight").floats(), Each(2));
}

TEST(InitFunction, initializes_a_replaced_model) {
  auto trainer =
      compile(Pair{}, pair_loss,
              pair_options([](const std::string&, const Shape&) { return init::constant(0.5); }));
  trainer.step({{"x", std::vector<float>(12, 1)}});
  trainer.replace_model(Pair{});
  EXPECT_THAT(trainer.download_params().at("first.weight").floats(), Each(0.5F));
}

// Exceptions of the function are passed on. If reset() throws, the trainer is unchanged.
TEST(InitFunction, may_throw) {
  bool refuse = false;
  auto trainer = compile(Pair{}, pair_loss, pair_options([&](const std::string&, const Shape&) {
                           if (refuse) throw std::runtime_error("no file");
                           return init::ones();
                         }));
  refuse = true;
  trainer.step({{"x", std::vector<float>(12, 1)}});
  const auto before = trainer.download_params();
  EXPECT_THROW(trainer.reset(), std::runtime_error);
  EXPECT_EQ(trainer.download_params().at("first.weight").bytes, before.at("first.weight").bytes);
  EXPECT_EQ(trainer.steps(), 1);
}

}  // namespace
}  // namespace tensorgrad::testing
