// SPDX-License-Identifier: MIT
// Recurrent layers, unrolled over the steps.
#include "tensorgrad/nn/recurrent.h"

#include <algorithm>
#include <cmath>
#include <string>
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

Recurrent::Recurrent(std::int64_t in, std::int64_t hidden, std::int64_t gates,
                     const RecurrentOptions& options, Loc loc)
    : in_(in), hidden_(hidden), gates_(gates), options_(options) {
  if (options.num_layers < 1) {
    throw UserError(
        "recurrent layer: num_layers must be at least 1, got " + std::to_string(options.num_layers),
        loc);
  }
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  const Init init = init::uniform(-bound, bound);
  const std::int64_t ways = options.bidirectional ? 2 : 1;
  for (std::int64_t k = 0; k < options.num_layers * ways; ++k) {
    layers_.push_back({Parameter({gates * hidden, k < ways ? in : ways * hidden}, init, loc),
                       Parameter({gates * hidden, hidden}, init, loc), std::nullopt, std::nullopt});
    if (!options.bias) continue;
    layers_.back().bias_ih.emplace(Shape{gates * hidden}, init, loc);
    layers_.back().bias_hh.emplace(Shape{gates * hidden}, init, loc);
  }
}

void Recurrent::visit_fields(ParameterVisitor& visitor) const {
  const std::size_t ways = options_.bidirectional ? 2 : 1;
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    const std::string layer = "_l" + std::to_string(k / ways) + (k % ways == 1 ? "_reverse" : "");
    visitor.parameter("weight_ih" + layer, layers_[k].weight_ih);
    visitor.parameter("weight_hh" + layer, layers_[k].weight_hh);
    if (!layers_[k].bias_ih) continue;
    visitor.parameter("bias_ih" + layer, *layers_[k].bias_ih);
    visitor.parameter("bias_hh" + layer, *layers_[k].bias_hh);
  }
}

std::vector<Tensor> Recurrent::first(Tensor x, const std::optional<Tensor>& given, Loc loc) const {
  const int rank = x.rank(loc);
  if ((rank != 2 && rank != 3) || x.size(-1, loc) != in_) {
    throw ShapeError("recurrent layer: expected x of two or three axes, the last of size " +
                         std::to_string(in_) + ", got " + to_string(x.shape(loc)),
                     loc);
  }
  Shape shape = {static_cast<std::int64_t>(layers_.size()), hidden_};
  if (rank == 3) shape.insert(shape.begin() + 1, x.size(options_.batch_first ? 0 : 1));
  if (given && given->shape() != shape) {
    throw ShapeError("recurrent layer: expected an initial state " + to_string(shape) + ", got " +
                         to_string(given->shape()),
                     loc);
  }
  Tensor states = given ? *given : zeros(shape, f32, loc);
  if (rank == 2) states = unsqueeze(states, 1, loc);
  return unbind(states, 0, loc);
}

Tensor Recurrent::last(Tensor x, const std::vector<Tensor>& states, Loc loc) {
  const Tensor all = stack(states, 0, loc);
  return x.rank() == 2 ? squeeze(all, 1, loc) : all;
}

namespace {

Tensor apply_linear(Tensor x, const Parameter& weight, const std::optional<Parameter>& bias,
                    Loc loc) {
  std::optional<Tensor> b;
  if (bias) b = bias->tensor(loc);
  return linear(x, weight.tensor(loc), b, loc);
}

void check_lengths(const Tensor& x, const Tensor& lengths, bool batch_first, Loc loc) {
  if (lengths.dtype() != i32 && lengths.dtype() != u32) {
    throw DtypeError(
        "recurrent layer: expected i32 lengths, got " + std::string(to_string(lengths.dtype())),
        loc);
  }
  if (x.rank() == 3 && lengths.shape() == Shape{x.size(batch_first ? 0 : 1)}) return;
  throw ShapeError("recurrent layer: expected a length for each sequence of the batch, got " +
                       to_string(lengths.shape()) + " for x " + to_string(x.shape()),
                   loc);
}

}  // namespace

Tensor Recurrent::Step::next(Tensor state, Tensor old) const {
  return valid ? where(*valid, state, old) : state;
}

Tensor Recurrent::run(Tensor x, std::vector<Tensor>& h, const Cell& cell,
                      const std::optional<Tensor>& lengths, Loc loc) const {
  const bool single = x.rank() == 2, turned = !single && options_.batch_first;
  if (lengths) check_lengths(x, *lengths, turned, loc);
  if (single) x = unsqueeze(x, 1, loc);
  if (turned) x = transpose(x, 0, 1, loc);
  const std::size_t ways = options_.bidirectional ? 2 : 1;
  for (std::size_t k = 0; k < layers_.size(); k += ways) {
    std::vector<Tensor> results;
    for (std::size_t which = k; which < k + ways; ++which) {
      const Layer& layer = layers_[which];
      // One product projects the inputs of all steps, which do not depend on the states.
      std::vector<Tensor> steps =
          unbind(apply_linear(x, layer.weight_ih, layer.bias_ih, loc), 0, loc);
      const std::size_t count = steps.size();
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t t = which > k ? count - 1 - i : i;
        Step step{steps[t], apply_linear(h[which], layer.weight_hh, layer.bias_hh, loc), {}};
        if (lengths) {
          step.valid = unsqueeze(gt(*lengths, static_cast<std::int64_t>(t)), 1, loc);
        }
        h[which] = step.next(cell(which, step), h[which]);
        steps[t] = step.valid ? where(*step.valid, h[which], 0.0) : h[which];
      }
      results.push_back(stack(steps, 0, loc));
    }
    x = concat(results, -1, loc);
    if (options_.dropout > 0 && k + ways < layers_.size()) x = dropout(x, options_.dropout, loc);
  }
  if (single) return squeeze(x, 1, loc);
  return turned ? transpose(x, 0, 1, loc) : x;
}

LSTM::Output LSTM::operator()(Tensor x, std::optional<Tensor> h, std::optional<Tensor> c,
                              std::optional<Tensor> lengths, Loc loc) const {
  std::vector<Tensor> hidden = first(x, h, loc), memory = first(x, c, loc);
  const auto cell = [&](std::size_t k, const Step& step) {
    const std::vector<Tensor> gate = chunk(step.from_input + step.from_hidden, 4, -1, loc);
    const Tensor fresh = sigmoid(gate[1]) * memory[k] + sigmoid(gate[0]) * tanh(gate[2]);
    memory[k] = step.next(fresh, memory[k]);
    return sigmoid(gate[3]) * tanh(fresh);
  };
  const Tensor output = run(x, hidden, cell, lengths, loc);
  return {output, last(x, hidden, loc), last(x, memory, loc)};
}

GRU::Output GRU::operator()(Tensor x, std::optional<Tensor> h, std::optional<Tensor> lengths,
                            Loc loc) const {
  std::vector<Tensor> hidden = first(x, h, loc);
  const auto cell = [&](std::size_t k, const Step& step) {
    const std::vector<Tensor> input = chunk(step.from_input, 3, -1, loc);
    const std::vector<Tensor> before = chunk(step.from_hidden, 3, -1, loc);
    const Tensor reset = sigmoid(input[0] + before[0]), update = sigmoid(input[1] + before[1]);
    const Tensor fresh = tanh(input[2] + reset * before[2]);
    return fresh + update * (hidden[k] - fresh);
  };
  const Tensor output = run(x, hidden, cell, lengths, loc);
  return {output, last(x, hidden, loc)};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
