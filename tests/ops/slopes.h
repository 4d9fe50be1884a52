// SPDX-License-Identifier: MIT
// Gradient tests: an op embedded in a graph, and central differences of its loss.
#pragma once

#include "op_cases.h"

namespace tensorgrad::testing {

// Embeds an op in a graph whose loss depends on it nonlinearly on both sides:
//   loss = sum(weights * f(op(g(x))))
// with random weights and smooth nonlinear f and g.
struct Embedded {
  std::vector<Tensor> raw;  // x: the f32 arguments
  Tensor loss;
  std::set<std::string> covered;  // ops and functions that the op itself added
};
Embedded embed(GraphBuilder& builder, const OpCase& each);
// Returns the sum of random weights times the gradients of that loss. The result is empty if no
// argument is f32.
Tensor loss_of_gradients(GraphBuilder& builder, const Embedded& made);

// Returns d "loss" / d leaf[i], computed in double by a fourth-order central difference.
double difference(const Graph& graph, ValueMap leaves, const std::string& leaf, std::size_t i);

// Central differences of "loss" with respect to about `count` elements of each of `raw`.
class Slopes {
 public:
  Slopes(const Graph& forward, const ValueMap& leaves, const std::vector<Tensor>& raw,
         std::size_t count);

  // Describes the first gradient ("g0" for the first of `raw`, ...) that is off by more than
  // `tolerance` times max(1, its largest element). Returns an empty string if all agree. A gradient
  // that is not finite never agrees.
  [[nodiscard]] std::string disagreement(const ValueMap& gradients, double tolerance) const;

 private:
  struct Slope {
    std::size_t operand, element;
    double value;
  };
  std::vector<Slope> slopes_;
};

// Gradients of sum(y) at points where no derivative exists or PyTorch defines it differently: ties,
// kinks, and the ends of a function's domain.
struct Corner {
  std::string name;
  std::vector<Values> args;
  std::function<Tensor(const std::vector<Tensor>&)> apply;
  std::vector<Values> gradients;  // PyTorch's, per argument; empty: not checked
  // Gradients of the sum of these gradients: PyTorch's, or 0 if PyTorch returns NaN.
  std::vector<Values> seconds = {};
};
const std::vector<Corner>& corners();
// Embeds the corner with its arguments as `raw`. The loss is sum(y).
Embedded embed(GraphBuilder& builder, const Corner& corner);
std::string disagreement(const Corner& corner, const ValueMap& gradients);
// Like disagreement(), for the second gradients. `grads` are the first gradients in the builder's
// graph.
std::string second_disagreement(const Corner& corner, GraphBuilder& builder, const Embedded& made,
                                const std::vector<Tensor>& grads);

}  // namespace tensorgrad::testing
