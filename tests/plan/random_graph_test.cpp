// SPDX-License-Identifier: MIT
// Random graphs, also large ones, under limits that few devices have: the results match the
// reference. tests/fuzz runs many more of them under the usual limits, with passes left out.
#include "support/random_graph.h"
#include "support/differential.h"

namespace tensorgrad::testing {
namespace {

// Runs the graph without the pass `skip` and checks that the results are within the rounding
// bounds.
void check(std::uint64_t seed, const RandomGraphOptions& options, const std::string& skip,
           Where where, int max_bindings) {
  const RandomGraph made = random_graph(seed, options);
  const ScopedEnv env("TENSORGRAD_SKIP", skip);
  const std::string note = "seed " + std::to_string(seed) + " on " + to_string(where) +
                           ", without '" + skip + "'\n" + print(made.graph);
  try {
    const ValueMap got = run_graph(made.graph, made.leaves, where, max_bindings);
    expect_within_bounds(made.graph, made.leaves, got, note);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what() << "\n" << note;
  }
}

TEST(RandomGraph, is_right_with_eight_bindings_on_cpu) {
  for (std::uint64_t seed = 0; seed < how_many(150) && !::testing::Test::HasFailure(); ++seed)
    check(seed, {}, "", Where::kCpu, 8);
}

TEST(RandomGraph, large_ones_are_right_with_eight_bindings_on_cpu) {
  for (std::uint64_t seed = 1000; seed < 1000 + how_many(40) && !::testing::Test::HasFailure();
       ++seed) {
    for (const char* skip : {"", "fuse"}) check(seed, {.ops = 60}, skip, Where::kCpu, 8);
  }
}

// Rows that several threads share; blocks, tables and tiles with ragged ends.
TEST(RandomGraph, of_long_axes_is_right_on_cpu) {
  for (std::uint64_t seed = 3000; seed < 3000 + how_many(30) && !::testing::Test::HasFailure();
       ++seed)
    check(seed, {.ops = 8, .size = 90}, "", Where::kCpu, 0);
}

TEST(RandomGraph, is_right_with_default_limits_on_webgpu) {
  for (std::uint64_t seed = 2020; seed < 2023 && !::testing::Test::HasFailure(); ++seed) {
    for (const char* skip : {"", "fuse"}) {
      check(seed, {}, skip, Where::kWebGpuDefaultLimits, 0);
    }
  }
}

}  // namespace
}  // namespace tensorgrad::testing
