// SPDX-License-Identifier: MIT
// Small networks whose launches run concurrently or in a fused sequence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/graph_builder.h"

namespace tensorgrad::testing {

// Adds three layers with their gradients and the row maxima of the result: products, sums and maps
// that are independent of each other.
inline Graph three_layers(GraphBuilder& s) {
  const Tensor x = s.input({32, 24}), w = s.input({24, 40}), u = s.input({40, 40});
  const Tensor v = s.input({40, 16}), b = s.input({40}), c = s.input({16});
  const Tensor y = matmul(relu(matmul(relu(matmul(x, w) + b), u)), v) + c;
  const std::vector<Tensor> grads = grad(mean(square(softmax(y))), {w, b, u, v, c});
  for (std::size_t i = 0; i < grads.size(); ++i) s.output("d" + std::to_string(i), grads[i]);
  s.output("largest", max(y, {1}));
  return s.graph();
}

inline constexpr int kChainBindings = 40, kChainColumns = 64;

// Returns the graph compiled for a device that runs launches concurrently and in fused sequences.
inline Compiled fused_sequence(const Graph& graph) {
  return compile_for_test(graph, kChainBindings, 0, true, kChainBindings, kChainColumns);
}

// Adds layers of the given widths with relu between them, and their gradients of the mean of
// squares.
inline void network(GraphBuilder& s, std::int64_t rows, const std::vector<std::int64_t>& widths) {
  Tensor x = s.input({rows, widths[0]});
  std::vector<Tensor> weights;
  for (std::size_t i = 1; i < widths.size(); ++i) {
    weights.push_back(s.input({widths[i], widths[i - 1]}, -0.3, 0.3));
    weights.push_back(s.input({widths[i]}));
    const auto& w = weights[weights.size() - 2];
    x = matmul(x, transpose(w)) + weights.back();
    if (i + 1 < widths.size()) x = relu(x);
  }
  s.output("y", x);
  const std::vector<Tensor> grads = grad(mean(square(x)), weights);
  for (std::size_t i = 0; i < grads.size(); ++i) s.output("d" + std::to_string(i), grads[i]);
}

}  // namespace tensorgrad::testing
