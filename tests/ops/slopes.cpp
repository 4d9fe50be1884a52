// SPDX-License-Identifier: MIT
#include "slopes.h"

#include <algorithm>
#include <cmath>

namespace tensorgrad::testing {
namespace {

double loss_at(const Graph& graph, const ValueMap& leaves) {
  return interpret_graph(graph, leaves).at("loss")[0];
}

}  // namespace

Embedded embed(GraphBuilder& builder, const OpCase& each) {
  Embedded made;
  std::vector<Tensor> args;
  for (const Argument& arg : each.args) {
    if (arg.dtype != f32) {
      const Values given = arg.values.empty()
                               ? builder.draw.values(arg.dtype, numel(arg.shape), arg.lo, arg.hi)
                               : arg.values;
      args.push_back(builder.input(arg.shape, arg.dtype, given));
      continue;
    }
    made.raw.push_back(builder.input(arg.shape, -1.5, 1.5));
    args.push_back(arg.lo + (arg.hi - arg.lo) * sigmoid(made.raw.back()));
  }
  const ValueId first = builder.graph().size();
  const Tensor y = each.apply(args);
  note_covered(builder.graph(), made.covered, first);
  const Tensor weights = builder.input(y.shape(), 0.5, 2);
  made.loss = sum(log1p(square(y + 0.7)) * weights);
  return made;
}

Tensor loss_of_gradients(GraphBuilder& builder, const Embedded& made) {
  Tensor loss;
  for (const Tensor& each : grad(made.loss, made.raw)) {
    const Tensor part = sum(each * builder.input(each.shape(), 0.5, 2));
    loss = loss.trace() == nullptr ? part : loss + part;
  }
  return loss;
}

double difference(const Graph& graph, ValueMap leaves, const std::string& leaf, std::size_t i) {
  constexpr double kStep = 1e-4;
  double& x = leaves.at(leaf)[i];
  const double at = x;
  const auto f = [&](double move) {
    x = at + move;
    return loss_at(graph, leaves);
  };
  return (8 * (f(kStep) - f(-kStep)) - (f(2 * kStep) - f(-2 * kStep))) / (12 * kStep);
}

Slopes::Slopes(const Graph& forward, const ValueMap& leaves, const std::vector<Tensor>& raw,
               std::size_t count) {
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const Node& leaf = forward[raw[i].id()];
    const auto size = static_cast<std::size_t>(numel(leaf.type.shape));
    for (std::size_t k = 0; k < size; k += 1 + size / count)
      slopes_.push_back({i, k, difference(forward, leaves, leaf.attrs.text("name"), k)});
  }
}

std::string Slopes::disagreement(const ValueMap& gradients, double tolerance) const {
  for (const Slope& slope : slopes_) {
    const Values& given = gradients.at("g" + std::to_string(slope.operand));
    double scale = 1;
    for (const double each : given) {
      if (std::isfinite(each)) scale = std::max(scale, std::abs(each));
    }
    const double got = given[slope.element];
    if (std::abs(got - slope.value) <= tolerance * scale) continue;
    return "operand " + std::to_string(slope.operand) + ", element " +
           std::to_string(slope.element) + ": " + std::to_string(got) + ", the slope is " +
           std::to_string(slope.value);
  }
  return {};
}

const std::vector<Corner>& corners() {
  using T = const std::vector<Tensor>&;
  static const std::vector<Corner> all = {
      {"relu", {{0, 2, -1}}, [](T t) { return relu(t[0]); }, {{0, 1, 0}}},
      {"abs", {{0, 2, -1}}, [](T t) { return abs(t[0]); }, {{0, 1, -1}}},
      {"maximum",
       {{2, 1, 4}, {2, 3, 1}},
       [](T t) { return maximum(t[0], t[1]) * 2.0; },
       {{1, 0, 2}, {1, 2, 0}}},
      {"minimum",
       {{2, 1, 4}, {2, 3, 1}},
       [](T t) { return minimum(t[0], t[1]) * 2.0; },
       {{1, 2, 0}, {1, 0, 2}}},
      {"max", {{3, 1, 3, 3}}, [](T t) { return max(t[0]) * 6.0; }, {{2, 0, 2, 2}}},
      {"min", {{1, 1, 3, 3}}, [](T t) { return min(t[0]) * 6.0; }, {{3, 3, 0, 0}}},
      {"atan2",
       {{0, 0, 2}, {0, 2, 0}},
       [](T t) { return atan2(t[0], t[1]); },
       {{0, 0.5, 0}, {0, 0, -0.5}},
       {{0, -0.25, 0.25}, {0, -0.25, 0.25}}},
      {"pow",
       {{0, 0, 3}, {0, 2, 0}},
       [](T t) { return pow(t[0], t[1]); },
       {{0, 0, 0}, {0, 0, std::log(3.0)}},
       {{0, 2, 1.0 / 3}, {0, 0, std::log(3.0) * std::log(3.0)}}},
      {"pow_of_negative", {{0, -2}, {1, 3}}, [](T t) { return pow(t[0], t[1]); }, {{1, 12}, {}}},
  };
  return all;
}

Embedded embed(GraphBuilder& builder, const Corner& corner) {
  Embedded made;
  for (const Values& values : corner.args)
    made.raw.push_back(builder.input({static_cast<std::int64_t>(values.size())}, f32, values));
  const Tensor y = corner.apply(made.raw);
  made.loss = sum(y * builder.input(y.shape(), 1, 1));  // ones that are not constants
  return made;
}

namespace {

std::string difference_from(const std::vector<Values>& want, const std::string& name,
                            const ValueMap& given) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    for (std::size_t k = 0; k < want[i].size(); ++k) {
      const double got = given.at(name + std::to_string(i))[k];
      if (std::abs(got - want[i][k]) <= 1e-12) continue;
      return "operand " + std::to_string(i) + ", element " + std::to_string(k) + ": " +
             std::to_string(got) + ", should be " + std::to_string(want[i][k]);
    }
  }
  return {};
}

}  // namespace

std::string disagreement(const Corner& corner, const ValueMap& gradients) {
  return difference_from(corner.gradients, "g", gradients);
}

std::string second_disagreement(const Corner& corner, GraphBuilder& builder, const Embedded& made,
                                const std::vector<Tensor>& grads) {
  Tensor total = sum(grads[0]);
  for (std::size_t i = 1; i < grads.size(); ++i) total = total + sum(grads[i]);
  const std::vector<Tensor> seconds = grad(total, made.raw);
  for (std::size_t i = 0; i < seconds.size(); ++i)
    builder.output("second" + std::to_string(i), seconds[i]);
  return difference_from(corner.seconds, "second",
                         interpret_graph(builder.graph(), builder.leaves));
}

}  // namespace tensorgrad::testing
