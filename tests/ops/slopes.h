// SPDX-License-Identifier: MIT
// How gradients are tested: an op in the middle of a graph, and central differences of its loss.
#pragma once

#include "op_cases.h"

namespace tensorgrad::testing {

// loss = sum of random weights times f(op(g(x))); f and g are smooth, and neither is linear.
struct Embedded {
  std::vector<Tensor> raw;  // x: the f32 arguments
  Tensor loss;
  std::set<std::string> covered;  // by the op's own part
};
Embedded embed(Sketch& sketch, const OpCase& each);
// Random weights times the gradients of that loss; none where no argument is f32.
Tensor loss_of_gradients(Sketch& sketch, const Embedded& made);

// d "loss" / d leaf[i] in double, of fourth order in the step.
double difference(const Graph& graph, ValueMap leaves, const std::string& leaf, std::size_t i);

// The differences of "loss" with respect to about `count` elements of each of `raw`.
class Slopes {
 public:
  Slopes(const Graph& forward, const ValueMap& leaves, const std::vector<Tensor>& raw,
         std::size_t count);

  // Where a gradient ("g0" of the first, ...) is off by more than a share of its largest element
  // (of 1, where that is less); empty where none is. What is not finite is off.
  [[nodiscard]] std::string disagreement(const ValueMap& gradients, double tolerance) const;

 private:
  struct Slope {
    std::size_t operand, element;
    double value;
  };
  std::vector<Slope> slopes_;
};

// The gradients of sum(y) where there is no slope, or PyTorch takes another: at ties, kinks, the
// ends of where a function is defined.
struct Corner {
  std::string name;
  std::vector<Values> args;
  std::function<Tensor(const std::vector<Tensor>&)> apply;
  std::vector<Values> gradients;  // PyTorch's, by argument; empty: not looked at
  // Those of the sum of the gradients: PyTorch's, and 0 where it has NaN.
  std::vector<Values> seconds = {};
};
const std::vector<Corner>& corners();
// Its loss, with the arguments as `raw`.
Embedded embed(Sketch& sketch, const Corner& corner);
std::string disagreement(const Corner& corner, const ValueMap& gradients);
// Of the second gradients, where `grads` are the first in the sketch's graph.
std::string second_disagreement(const Corner& corner, Sketch& sketch, const Embedded& made,
                                const std::vector<Tensor>& grads);

}  // namespace tensorgrad::testing
