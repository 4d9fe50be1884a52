// SPDX-License-Identifier: MIT
// Chains of thousands of nodes, compiled and run on threads with small stacks. No part of a compile
// recurses over the graph. On macOS, threads other than the main one have 512 KiB.
#include <pthread.h>

#include <functional>
#include <map>
#include <string>

#include "base/env.h"
#include "support/graph_builder.h"
#include "tensorgrad/tensorgrad.h"

#include <gtest/gtest.h>

namespace tensorgrad::testing {
namespace {

constexpr std::size_t kSmallStack = 256 << 10;

void on_small_stack(std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kSmallStack), 0);
  const auto run = [](void* work) -> void* {
    (*static_cast<std::function<void()>*>(work))();
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

struct DeepChain {
  int length = 0;
  std::function<Tensor(const Tensor&, int)> step;
};

const std::map<std::string, DeepChain>& deep_chains() {
  static const std::map<std::string, DeepChain> all = {
      {"pointwise", {8000, [](const Tensor& x, int) { return x * 0.999 + 0.001; }}},
      {"where",
       {4000, [](const Tensor& x, int i) { return where(x > 0.1 * (i % 7), x - 0.01, x + 0.01); }}},
      {"masks", {4000, [](const Tensor& x, int) { return cast(logical_not(x > 0.5), f32); }}},
      {"scalars", {8000, [](const Tensor& x, int) { return x + mean(x) * 0.001; }}},
      {"views", {8000, [](const Tensor& x, int) { return transpose(x); }}},
      {"windows",
       {2000, [](const Tensor& x, int i) { return narrow(pad(x, {1, 1}), 1, i % 3, 4); }}},
      {"broadcasts",
       {8000, [](const Tensor& x, int) { return reshape(broadcast_to(x, {1, 4, 4}), {4, 4}); }}},
      {"concat",
       {1000,
        [](const Tensor& x, int) { return concat({narrow(x, 1, 1, 3), narrow(x, 1, 0, 1)}, 1); }}},
      {"rows", {2000, [](const Tensor& x, int) { return x - 0.5 * mean(x, 1, true); }}},
      {"products", {2000, [](const Tensor& x, int) { return tanh(matmul(x, x)); }}},
      {"gelu", {2000, [](const Tensor& x, int) { return gelu(x) + 0.5; }}},
      {"checkpoints",
       {500,
        [](const Tensor& x, int) {
          return checkpoint([](const std::vector<Tensor>& y) { return sin(y[0]); }, {x});
        }}},
  };
  return all;
}

class DeepGraph : public ::testing::TestWithParam<std::string> {};

TEST_P(DeepGraph, compiles_and_runs_on_a_small_stack) {
  const DeepChain& chain = deep_chains().at(GetParam());
  on_small_stack([&] {
    GraphBuilder s;
    Tensor x = s.input({4, 4}, 0, 1);
    for (int i = 0; i < chain.length; ++i) x = chain.step(x, i);
    s.output("y", x);
    s.check(Where::kCpu);
  });
}

TEST_P(DeepGraph, has_gradients_on_a_small_stack) {
  const DeepChain& chain = deep_chains().at(GetParam());
  on_small_stack([&] {
    GraphBuilder s;
    Tensor x = s.input({4, 4}, 0, 1);
    const Tensor first = x;
    for (int i = 0; i < chain.length / 4; ++i) x = chain.step(x, i);
    s.output("g", grad(sum(x), {first})[0]);
    s.check(Where::kCpu);
  });
}

std::string deep_name(const ::testing::TestParamInfo<std::string>& info) { return info.param; }
std::vector<std::string> deep_names() {
  std::vector<std::string> all;
  for (const auto& [name, chain] : deep_chains()) all.push_back(name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Chains, DeepGraph, ::testing::ValuesIn(deep_names()), deep_name);

// Many nodes in a chain, and in many chains. docs/testing.md has the command for a million.
TEST(DeepGraphs, of_many_nodes_compile_on_a_small_stack) {
  const std::string wanted_nodes = env("TENSORGRAD_DEEP_NODES");
  const int nodes = wanted_nodes.empty() ? 50'000 : std::stoi(wanted_nodes);
  constexpr int kWidth = 1000;
  on_small_stack([&] {
    auto chain = compile_function(
        [&](const Inputs& in) {
          Tensor x = in["x"];
          for (int i = 0; i < nodes / 2; ++i) x = x * 0.999 + 0.001;  // two ops
          return x;
        },
        {.inputs = {{"x", {2}}}, .device = {.kind = "cpu", .threads = 1}});
    double wanted = 0.5;
    for (int i = 0; i < nodes / 2; ++i) wanted = wanted * 0.999 + 0.001;
    EXPECT_NEAR(chain({{"x", std::vector<float>{0.5F, 1}}}).floats().at(0), wanted, 1e-3);
    auto mean_of_chains = compile_function(
        [&](const Inputs& in) {
          std::vector<Tensor> parts;
          for (int i = 0; i < kWidth; ++i) {
            Tensor x = in["x"] + i;
            for (int j = 0; j < nodes / kWidth / 2; ++j) x = sin(x) + 0.5;  // towards 1.4973004
            parts.push_back(x);
          }
          return mean(concat(parts, 0));
        },
        {.inputs = {{"x", {2}}}, .device = {.kind = "cpu", .threads = 1}});
    EXPECT_NEAR(mean_of_chains({{"x", std::vector<float>{0.5F, 1}}}).floats().at(0), 1.4973004,
                1e-5);
  });
}

// Through the public interface: index tensors and explain().
TEST(DeepGraphs, are_explained_on_a_small_stack) {
  on_small_stack([] {
    auto f = compile_function(
        [](const Inputs& in) {
          Tensor index = in["i"];
          for (int i = 0; i < 1000; ++i)
            index = concat({narrow(index, 0, 1, 3), narrow(index, 0, 0, 1)}, 0);
          Tensor x = gather(in["x"], 0, index);
          for (int i = 0; i < 3000; ++i) x = x * 0.999 + 0.001;
          return x;
        },
        {.inputs = {{"x", {4}}, {"i", {4}, i32}}, .device = {.kind = "cpu"}});
    EXPECT_GT(f.explain().size(), 100U);
  });
}

}  // namespace
}  // namespace tensorgrad::testing
