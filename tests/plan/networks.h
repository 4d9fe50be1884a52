// SPDX-License-Identifier: MIT
// Small networks whose launches run beside each other or in a chain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/sketch.h"

namespace tensorgrad::testing {

// Three layers with their gradients, and the rows of a softmax: products, sums and maps that do not
// need each other.
inline Graph three_layers(Sketch& s) {
  const Tensor x = s.input({32, 24}), w = s.input({24, 40}), u = s.input({40, 40});
  const Tensor v = s.input({40, 16}), b = s.input({40}), c = s.input({16});
  const Tensor y = matmul(relu(matmul(relu(matmul(x, w) + b), u)), v) + c;
  const std::vector<Tensor> grads = grad(mean(square(softmax(y))), {w, b, u, v, c});
  for (std::size_t i = 0; i < grads.size(); ++i) s.output("d" + std::to_string(i), grads[i]);
  s.output("largest", max(y, {1}));
  return s.graph();
}

inline constexpr int kChainBindings = 40, kChainColumns = 64;

// Compiled for a device that joins launches and chains them.
inline Compiled chained(const Graph& graph) {
  return compile_for_test(graph, kChainBindings, 0, true, kChainBindings, kChainColumns);
}

// Layers of these widths, relu between them, and their gradients by the mean of squares.
inline void network(Sketch& s, std::int64_t rows, const std::vector<std::int64_t>& widths) {
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
