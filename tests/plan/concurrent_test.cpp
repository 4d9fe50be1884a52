// SPDX-License-Identifier: MIT
// Concurrent launches: run as one kernel, they return the same bits as one by one, in fewer
// dispatches.
#include "ops/expr.h"
#include "plan/networks.h"
#include "support/differential.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

TEST(Beside, matches_the_reference_on_webgpu) {
  GraphBuilder s;
  three_layers(s);
  s.check(Where::kWebGpu);
}

TEST(Beside, joins_launches_into_fewer_kernels) {
  GraphBuilder s;
  const Program one = compile_for_test(three_layers(s), 16).program;
  const Program joined = compile_for_test(s.graph(), 16, 0, true, 16).program;
  EXPECT_EQ(count_dispatches(one), static_cast<std::int64_t>(one.launches.size()));
  EXPECT_EQ(joined.launches.size(), one.launches.size());
  EXPECT_LE(count_dispatches(joined) + 2, count_dispatches(one)) << print(joined);
}

TEST(Beside, changes_no_bit_of_random_graphs_on_webgpu) {
  for (std::uint64_t seed = 300; seed < 300 + how_many(8) && !::testing::Test::HasFailure();
       ++seed) {
    const RandomGraph made = random_graph(seed);
    const std::string note = "seed " + std::to_string(seed) + "\n" + print(made.graph);
    const ValueMap joined = run_graph(made.graph, made.leaves, Where::kWebGpu);
    const ValueMap alone = run_graph(made.graph, made.leaves, Where::kWebGpu, 0, 0, false);
    // Compilers of real GPUs may generate different instructions from the same text.
    const bool software = device_at(Where::kWebGpu)->info().software;
    expect_close(made.graph, joined, alone, software ? 0 : 1e-4, note);
  }
}

// Deferred work must not keep all activations of a deep network alive. It runs as soon as enough of
// it has accumulated.
TEST(Beside, keeps_the_peak_of_a_deep_network_low) {
  GraphBuilder s;
  std::vector<Tensor> weights;
  Tensor x = s.input({512, 32});
  for (int i = 0; i < 100; ++i) {
    weights.push_back(s.input({32, 32}));
    x = tanh(matmul(x, weights.back()));
  }
  const std::vector<Tensor> grads = grad(sum(x), weights);
  for (std::size_t i = 0; i < grads.size(); ++i) s.output("d" + std::to_string(i), grads[i]);
  const Program one = compile_for_test(s.graph(), 64).program;
  const Program joined = compile_for_test(s.graph(), 64, 0, true, 64).program;
  EXPECT_LT(count_dispatches(joined) + 90, count_dispatches(one));
  EXPECT_LT(joined.peak_bytes, one.peak_bytes + 30 * 512 * 32 * 4);
}

}  // namespace
}  // namespace tensorgrad::testing
