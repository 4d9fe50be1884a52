// SPDX-License-Identifier: MIT
// A selective scan with its gradients.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/graph_builder.h"

namespace tensorgrad::testing {

struct ScanTraining {
  GraphBuilder builder;
  std::vector<Tensor> inputs;

  ScanTraining(std::int64_t batch, std::int64_t length, std::int64_t channels, std::int64_t states,
               bool gated = false, Discretization discretization = Discretization::kEuler) {
    const Shape steps = {batch, length, channels}, bc = {batch, length, states};
    inputs = {builder.input(steps, -1, 1), builder.input(steps, 0.01, 0.4),
              builder.input({channels, states}, -2, -0.1), builder.input(bc, -1, 1),
              builder.input(bc, -1, 1)};
    SelectiveScanOptions options = {.discretization = discretization};
    if (gated) {
      inputs.insert(inputs.end(), {builder.input({channels}, -1, 1), builder.input(steps, -3, 3)});
      options.D = inputs[5];
      options.z = inputs[6];
    }
    const Tensor y =
        selective_scan(inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], options).y;
    const std::vector<Tensor> d = grad(sum(square(y)), inputs);
    builder.output("y", y);
    for (std::size_t i = 0; i < d.size(); ++i) builder.output("d" + std::to_string(i), d[i]);
  }
  void check(Where where, std::int64_t most_bytes = 0) {
    expect_close(builder.graph(), run_graph(builder.graph(), builder.leaves, where, 0, most_bytes),
                 interpret_graph(builder.graph(), builder.leaves), 1e-4, "at " + to_string(where));
  }
};

}  // namespace tensorgrad::testing
