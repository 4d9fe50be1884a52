// SPDX-License-Identifier: MIT
// Chains of values that each read the previous one at several places. If each value were recomputed
// at every read, the kernels would double with every value.
#include <functional>
#include <map>

#include "kernel/program.h"
#include "support/graph_builder.h"
#include "tensorgrad/tensorgrad.h"

#include <gtest/gtest.h>

namespace tensorgrad::testing {
namespace {

using Step = std::function<Tensor(const Tensor&, int)>;

// One compare-and-swap of a bitonic sort over the last axis, written by hand.
Tensor bitonic(const Tensor& x, int i) {
  static const std::vector<std::pair<int, int>> steps = {
      {2, 1}, {4, 2}, {4, 1}, {8, 4}, {8, 2}, {8, 1}, {16, 8}, {16, 4}, {16, 2}, {16, 1}};
  const auto [block, distance] = steps[static_cast<std::size_t>(i) % steps.size()];
  const Tensor pairs = reshape(x, {-1, 16 / (2 * distance), 2, distance});
  const Tensor other = reshape(flip(pairs, {2}), {-1, 16});
  const Tensor place = arange(16);
  const auto bit = [&](int size) { return lt(remainder(place, 2 * size), size); };
  return where(eq(bit(block % 16 == 0 ? 16 : block), bit(distance)), minimum(x, other),
               maximum(x, other));
}

const std::map<std::string, Step>& families() {
  static const std::map<std::string, Step> all = {
      {"roll", [](const Tensor& x, int) { return roll(x, {1}, {0}); }},
      {"roll of two axes", [](const Tensor& x, int) { return roll(x, {1, 2}, {0, 1}); }},
      {"flip", [](const Tensor& x, int) { return 0.5 * x + 0.25 * flip(x, {0}); }},
      {"transpose", [](const Tensor& x, int) { return x - 0.5 * transpose(x); }},
      {"transpose and add", [](const Tensor& x, int) { return transpose(x) + 1.0; }},
      {"shift",
       [](const Tensor& x, int) { return 0.5 * (x - pad(narrow(x, 0, 0, 15), {0, 0, 1, 0})); }},
      {"circular pad",
       [](const Tensor& x, int) {
         return narrow(pad(x, {1, 1, 0, 0}, PadMode::kCircular), 1, 0, 16);
       }},
      {"reflecting pad",
       [](const Tensor& x, int) { return narrow(pad(x, {2, 1}, PadMode::kReflect), 1, 0, 16); }},
      {"stack and reshape",
       [](const Tensor& x, int) {
         return reshape(stack({narrow(x, 0, 0, 8), narrow(x, 0, 8, 8)}, 1), {16, 16});
       }},
      {"repeat_interleave",
       [](const Tensor& x, int) { return narrow(repeat_interleave(x, 2, 0), 0, 3, 16); }},
      {"small pool",
       [](const Tensor& x, int) {
         return reshape(
             narrow(avg_pool1d(pad(reshape(x, {1, 16, 16}), {0, 1}), 2, {.stride = 1}), 2, 0, 16),
             {16, 16});
       }},
      {"masks",
       [](const Tensor& x, int) { return where(transpose(x) > x, x * 0.5, flip(x, {1})); }},
      {"bitonic sort", bitonic},
  };
  return all;
}

// Returns the number of instructions of all kernels for `steps` steps.
std::size_t instructions(const Step& step, int steps) {
  GraphBuilder s;
  Tensor x = s.input({16, 16});
  for (int i = 0; i < steps; ++i) x = step(x, i);
  s.output("y", x);
  std::size_t total = 0;
  for (const Launch& launch : compile_for_test(s.graph(), 8).program.launches)
    for (const ScalarProgram* program : programs_of(launch)) total += program->instrs.size();
  return total;
}

TEST(RepeatedReading, cost_is_linear_in_the_length_of_the_chain) {
  for (const auto& [name, step] : families()) {
    const std::size_t some = instructions(step, 20), twice = instructions(step, 40);
    EXPECT_LE(twice, some * 9 / 4) << name << ": " << some << ", " << twice;
    EXPECT_LE(some, 20U * 100) << name;
  }
}

void expect_interpreted_values(Where where) {
  for (const auto& [name, step] : families()) {
    SCOPED_TRACE(name);
    GraphBuilder s;
    Tensor x = s.input({16, 16});
    for (int i = 0; i < 10; ++i) x = step(x, i);
    s.output("y", x);
    s.check(where);
  }
}

TEST(RepeatedReading, matches_the_interpreter) { expect_interpreted_values(Where::kCpu); }

TEST(RepeatedReading, matches_the_interpreter_on_webgpu) {
  expect_interpreted_values(Where::kWebGpu);
}

TEST(RepeatedReading, sorts_by_hand_written_steps) {
  GraphBuilder s;
  const Tensor x = s.input({4, 16});
  Tensor sorted = x;
  for (int i = 0; i < 10; ++i) sorted = bitonic(sorted, i);
  s.output("y", eq(sorted, sort(x, 1).values));
  const ValueMap results = run_graph(s.graph(), s.leaves, Where::kCpu);
  EXPECT_EQ(results.at("y"), Values(64, 1));
}

// No node joins a launch of 1,024 members, because drivers take more than linear time to compile a
// kernel.
TEST(RepeatedReading, long_chains_are_cut) {
  GraphBuilder s;
  Tensor x = s.input({16, 16});
  for (int i = 0; i < 3000; ++i) x = i % 2 == 0 ? sin(x) : x * 1.01;
  s.output("y", x);
  const Program program = compile_for_test(s.graph(), 8).program;
  EXPECT_GE(program.launches.size(), 3U);
  for (const Launch& launch : program.launches)
    for (const ScalarProgram* each : programs_of(launch)) EXPECT_LE(each->instrs.size(), 1100U);
}

}  // namespace
}  // namespace tensorgrad::testing
