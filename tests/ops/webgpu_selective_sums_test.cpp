// SPDX-License-Identifier: MIT
// Sums of the selective scan's backward pass over states and channels, with each method of
// reduction.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "backend/webgpu/device.h"
#include "codegen/wgsl/writer.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

struct Selective {
  std::int64_t batch, length, channels, states;
  int in_memory;  // subgroup size emulated in workgroup memory
  Discretization discretization = Discretization::kEuler;
  bool gated = true;           // with D and z
  bool last_vanishes = false;  // infinite decay: the last channel's states become 0
};

struct SelectiveGradients {
  GraphBuilder builder;

  explicit SelectiveGradients(const Selective& c) {
    const Shape steps = {c.batch, c.length, c.channels}, bc = {c.batch, c.length, c.states};
    const Tensor rate = builder.input({c.channels, c.states}, -2, -0.1);
    if (c.last_vanishes) {
      Values& rates = builder.leaves.at("in0");
      std::fill(rates.end() - c.states, rates.end(), -std::numeric_limits<double>::infinity());
    }
    std::vector<Tensor> inputs = {builder.input(steps, -1, 1), builder.input(steps, 0.01, 0.4),
                                  rate, builder.input(bc, -1, 1), builder.input(bc, -1, 1)};
    SelectiveScanOptions options = {.discretization = c.discretization};
    if (c.gated) {
      inputs.insert(inputs.end(),
                    {builder.input({c.channels}, -1, 1), builder.input(steps, -3, 3)});
      options.D = inputs[5];
      options.z = inputs[6];
    }
    const Tensor y =
        selective_scan(inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], options).y;
    // If a channel vanishes, the gradients of its rate and delta are NaN, so they are left out.
    if (c.last_vanishes) inputs = {inputs[0], inputs[3], inputs[4]};
    const std::vector<Tensor> d = grad(sum(square(y)), inputs);
    for (std::size_t i = 0; i < d.size(); ++i) builder.output("d" + std::to_string(i), d[i]);
  }
};

// Reduces through workgroup memory, through the device's subgroups, and through emulated larger
// ones.
void check_sums(const Selective& c) {
  auto& device = dynamic_cast<webgpu::WebGpuDevice&>(*device_at(Where::kWebGpu));
  SelectiveGradients t(c);
  const ValueMap want = interpret_graph(t.builder.graph(), t.builder.leaves);
  for (const Subgroups& way :
       {Subgroups{.size = 1}, Subgroups{}, Subgroups{.size = c.in_memory, .in_memory = true}}) {
    WgslOptions options;
    options.subgroups = way;
    device.force_kernels(options);
    expect_close(t.builder.graph(), run_graph(t.builder.graph(), t.builder.leaves, Where::kWebGpu),
                 want, 1e-4, "subgroups of " + std::to_string(way.size));
  }
  device.force_kernels({});
}

// With 1 to 64 states, 2 to 32 threads share a channel, so there are both more and fewer threads
// than sums. If the number of states is even, they are stored in pairs, including the padding.
TEST(SelectiveSums, of_one_channel_on_webgpu) { check_sums({1, 33, 1, 2, 2}); }
TEST(SelectiveSums, of_few_states_on_webgpu) {
  check_sums({2, 37, 35, 3, 16, Discretization::kEuler, false});
}
TEST(SelectiveSums, of_some_states_on_webgpu) {
  check_sums({1, 18, 40, 7, 4, Discretization::kZeroOrderHold});
}
TEST(SelectiveSums, of_some_pairs_of_states_on_webgpu) { check_sums({1, 18, 37, 6, 4}); }
// Whole chunks and blocks and several subgroups, so all reads are vectorized (vec4).
TEST(SelectiveSums, of_sixteen_states_on_webgpu) { check_sums({2, 48, 64, 16, 32}); }
TEST(SelectiveSums, of_sixteen_states_without_a_gate_on_webgpu) {
  check_sums({2, 48, 64, 16, 32, Discretization::kEuler, false});
}
TEST(SelectiveSums, of_many_states_on_webgpu) { check_sums({1, 17, 5, 61, 32}); }

// A block has 32 channels and is padded if there are fewer. The padding must not contribute.
TEST(SelectiveSums, ignores_channels_beyond_the_last_on_webgpu) {
  check_sums({1, 18, 35, 5, 4, Discretization::kEuler, false, true});
}

}  // namespace
}  // namespace tensorgrad::testing
