// SPDX-License-Identifier: MIT
// Comparison of gradients with differences of the loss in double precision. The reference
// interpreter computes the loss op by op, so the only error is the rounding of the gradient.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "backend/reference/interpreter.h"
#include "ops/registry.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

using DoubleLeaves = std::map<std::string, std::vector<double>>;  // inputs and parameters

inline std::vector<double> as_doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// Computes the loss of a function, its only output, in double precision.
class LossInDouble {
 public:
  explicit LossInDouble(const CompiledFunction& forward)
      : graph_(parse(forward.graph().text, "loss", find_op)) {}

  double operator()(const DoubleLeaves& leaves) const {
    InterpretOptions options;
    options.leaf = [&](const Node& leaf) { return leaves.at(leaf.attrs.text("name")); };
    const auto loss = static_cast<std::size_t>(graph_.outputs.at(0).value);
    return interpret(graph_, options).at(loss).data.at(0);
  }

 private:
  Graph graph_;
};

// Checks the gradient of a leaf in three directions, each of which changes all its elements.
inline void expect_gradient_of_differences(const LossInDouble& loss, const DoubleLeaves& at,
                                           const std::string& name,
                                           const std::vector<float>& gradient,
                                           std::mt19937& random) {
  constexpr double kStep = 1e-5;
  ASSERT_EQ(gradient.size(), at.at(name).size()) << name;
  for (int way = 0; way < 3; ++way) {
    DoubleLeaves below = at, above = at;
    double slope = 0, squares = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double direction = random() % 2 == 0 ? -1 : 1;
      below.at(name)[i] -= kStep * direction;
      above.at(name)[i] += kStep * direction;
      slope += gradient[i] * direction;
      squares += static_cast<double>(gradient[i]) * gradient[i];
    }
    EXPECT_GT(squares, 0) << name;
    const double difference = (loss(above) - loss(below)) / (2 * kStep);
    // The slope is about sqrt(squares). The second term is for the rounding of differences.
    EXPECT_NEAR(slope, difference, 3e-5 * std::sqrt(squares) + 2e-10) << name << ' ' << way;
  }
}

}  // namespace tensorgrad::testing
