// SPDX-License-Identifier: MIT
// Launches beside each other: joined they give the bits that they give one by one, and there are
// fewer of them.
#include "backend/webgpu/device.h"
#include "ops/expr.h"
#include "support/differential.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

// Three layers with their gradients, and the rows of a softmax: products, sums and maps that do not
// need each other.
Graph three_layers(Sketch& s) {
  const Tensor x = s.input({32, 24}), w = s.input({24, 40}), u = s.input({40, 40});
  const Tensor v = s.input({40, 16}), b = s.input({40}), c = s.input({16});
  const Tensor y = matmul(relu(matmul(relu(matmul(x, w) + b), u)), v) + c;
  const std::vector<Tensor> grads = grad(mean(square(softmax(y))), {w, b, u, v, c});
  for (std::size_t i = 0; i < grads.size(); ++i) s.output("d" + std::to_string(i), grads[i]);
  s.output("largest", max(y, {1}));
  return s.graph();
}

TEST(Beside, gives_what_the_reference_gives_on_webgpu) {
  Sketch s;
  three_layers(s);
  s.check(Where::kWebGpu);
}

TEST(Beside, is_fewer_kernels_for_as_many_launches) {
  Sketch s;
  const Program one = compile_for_test(three_layers(s), 16).program;
  const Program joined = compile_for_test(s.graph(), 16, 0, true, 16).program;
  EXPECT_EQ(count_dispatches(one), static_cast<std::int64_t>(one.launches.size()));
  EXPECT_EQ(joined.launches.size(), one.launches.size());
  EXPECT_LE(count_dispatches(joined) + 2, count_dispatches(one)) << print(joined);
}

// What the plan counts is what the device dispatches, as long as it has bindings enough.
TEST(Beside, is_joined_by_webgpu_where_the_plan_says_so) {
  Sketch s;
  const std::shared_ptr<Device> device = device_at(Where::kWebGpu);
  const int bindings = device->info().limits.max_storage_bindings;
  const Program program = compile_for_test(three_layers(s), bindings, 0, true, bindings).program;
  auto& webgpu = dynamic_cast<webgpu::WebGpuDevice&>(*device);
  const auto dispatches = write_dispatches(program, webgpu.kernel_options(), bindings);
  EXPECT_EQ(static_cast<std::int64_t>(dispatches.size()), count_dispatches(program));
  EXPECT_LT(dispatches.size(), program.launches.size());
  // With fewer bindings than the plan was told of, some of them run one after the other.
  EXPECT_GT(write_dispatches(program, webgpu.kernel_options(), 4).size(), dispatches.size());
  WgslOptions separate = webgpu.kernel_options();
  separate.separate = true;
  EXPECT_EQ(write_dispatches(program, separate, bindings).size(), program.launches.size());
}

TEST(Beside, changes_no_bit_of_random_graphs_on_webgpu) {
  for (std::uint64_t seed = 300; seed < 300 + how_many(8) && !::testing::Test::HasFailure();
       ++seed) {
    const RandomGraph made = random_graph(seed);
    const std::string note = "seed " + std::to_string(seed) + "\n" + print(made.graph);
    const ValueMap joined = run_graph(made.graph, made.leaves, Where::kWebGpu);
    const ValueMap alone = run_graph(made.graph, made.leaves, Where::kWebGpu, 0, 0, false);
    // Compilers of real GPUs may make other instructions of the same text.
    const bool software = device_at(Where::kWebGpu)->info().software;
    expect_close(made.graph, joined, alone, software ? 0 : 1e-4, note);
  }
}

// Work that is put off must not keep a long network's activations: it runs when there is much of
// it.
TEST(Beside, keeps_the_peak_of_a_deep_network_low) {
  Sketch s;
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
