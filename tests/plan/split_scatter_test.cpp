// SPDX-License-Identifier: MIT
// The gradient of an embedding of few words, computed in parts, is the same as in one launch.
#include <algorithm>

#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kPlaces = 4096, kWords = 8, kWidth = 256;

void embed(GraphBuilder& s) {
  const Tensor table = s.input({kWords, kWidth}), index = s.input({kPlaces}, 0, kWords - 1, i32);
  const Tensor weight = s.input({kPlaces, kWidth}, -1, 1);
  s.output("gradient", grad(sum(embedding(index, table) * weight), {table})[0]);
}

const ScatterLaunch& scatter_of(const Program& program) {
  const auto found = std::find_if(program.launches.begin(), program.launches.end(),
                                  [](const Launch& launch) { return launch.is<ScatterLaunch>(); });
  return found->as<ScatterLaunch>();
}

void check_split_embedding(Where where) {
  GraphBuilder s;
  embed(s);
  const Program program = compile_for_test(s.graph(), 8).program;
  EXPECT_GT(scatter_of(program).pre, 1);
  EXPECT_EQ(program.launches.size(), 2U);
  s.check(where, 1e-4);
}
TEST(SplitScatter, matches_the_gradient_of_an_embedding_on_cpu) {
  check_split_embedding(Where::kCpu);
}
TEST(SplitScatter, matches_the_gradient_of_an_embedding_on_webgpu) {
  check_split_embedding(Where::kWebGpu);
}

TEST(SplitScatter, can_be_disabled) {
  const ScopedEnv env("TENSORGRAD_SKIP", "split_scatter");
  GraphBuilder s;
  embed(s);
  const Program program = compile_for_test(s.graph(), 8).program;
  EXPECT_EQ(scatter_of(program).pre, 1);
  EXPECT_EQ(program.launches.size(), 1U);
}

// Out-of-range indices are dropped in every part.
void check_beyond(Where where) {
  GraphBuilder s;
  const Tensor table = s.input({kWords, kWidth}), index = s.input({kPlaces}, -2, kWords + 2, i32);
  const Tensor rows = gather(table, 0, broadcast_to(unsqueeze(index, 1), {kPlaces, kWidth}));
  s.output("gradient", grad(sum(rows * s.input({kPlaces, kWidth}, -1, 1)), {table})[0]);
  s.check(where, 1e-4);
}
TEST(SplitScatter, ignores_indices_out_of_range_on_cpu) { check_beyond(Where::kCpu); }
TEST(SplitScatter, ignores_indices_out_of_range_on_webgpu) { check_beyond(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
