// SPDX-License-Identifier: MIT
// Random graphs: with any pass off and with few bindings they give what the interpreter gives.
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

constexpr double kTolerance = 1e-4;

std::string note(std::uint64_t seed, const std::string& how, const Graph& graph) {
  return "seed " + std::to_string(seed) + ", " + how + "\n" + print(graph);
}

// Pass `skip` is off (none if empty).
void check(const RandomGraph& made, std::uint64_t seed, const std::string& skip, Where where,
           int max_bindings) {
  const ScopedEnv env("TENSORGRAD_SKIP", skip);
  const std::string how =
      to_string(where) + ", without '" + skip + "', bindings " + std::to_string(max_bindings);
  const ValueMap want = interpret_graph(made.graph, made.leaves);
  try {
    const ValueMap got = run_graph(made.graph, made.leaves, where, max_bindings);
    expect_close(made.graph, got, want, kTolerance, note(seed, how, made.graph));
  } catch (const Error& error) {
    ADD_FAILURE() << error.what() << "\n" << note(seed, how, made.graph);
  }
}

TEST(RandomGraph, is_the_same_with_any_pass_off_on_cpu) {
  for (std::uint64_t seed = 0; seed < how_many(150) && !::testing::Test::HasFailure(); ++seed) {
    const RandomGraph made = random_graph(seed);
    for (const char* skip :
         {"", "fuse", "simplify", "fold", "cse", "dce", "fuse,simplify,fold,cse,dce"}) {
      check(made, seed, skip, Where::kCpu, 0);
    }
    check(made, seed, "", Where::kCpu, 8);
  }
}

TEST(RandomGraph, large_ones_are_the_same_on_cpu) {
  for (std::uint64_t seed = 1000; seed < 1000 + how_many(40) && !::testing::Test::HasFailure();
       ++seed) {
    const RandomGraph made = random_graph(seed, {.ops = 60});
    for (const char* skip : {"", "fuse"}) check(made, seed, skip, Where::kCpu, 8);
  }
}

TEST(RandomGraph, are_the_same_on_webgpu) {
  for (std::uint64_t seed = 2000; seed < 2012 && !::testing::Test::HasFailure(); ++seed) {
    check(random_graph(seed), seed, "", Where::kWebGpu, 0);
  }
  for (std::uint64_t seed = 2020; seed < 2023 && !::testing::Test::HasFailure(); ++seed) {
    check(random_graph(seed), seed, "fuse", Where::kWebGpuDefaultLimits, 0);
  }
}

}  // namespace
}  // namespace tensorgrad::testing
