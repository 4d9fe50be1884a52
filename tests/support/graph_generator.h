// SPDX-License-Identifier: MIT
// Grows the forward pass of a random graph in the current trace.
#pragma once

#include <functional>
#include <vector>

#include "support/random_graph.h"

namespace tensorgrad::testing {

// Returns the trained tensor with this number and shape.
using WeightSource = std::function<Tensor(std::size_t number, const Shape& shape)>;

// Keeps a pool of f32 values with at most 3 axes. Every step keeps its result near [-3, 3].
class GraphGenerator {
 public:
  GraphGenerator(std::uint64_t seed, const RandomGraphOptions& options, WeightSource source)
      : draw_(seed), options_(options), weight_source_(std::move(source)) {}

  // Returns the loss.
  Tensor run();

  // Further outputs of the graph.
  std::vector<std::pair<std::string, Tensor>> outputs;
  std::vector<Shape> weights;  // shapes requested from the weight source

 private:
  Shape shape();
  Tensor input(const Shape& shape, DType dtype = f32);
  Tensor weight(const Shape& shape);
  Tensor pick();
  Tensor fitted(const Tensor& x, const Shape& like);
  Tensor grid(std::int64_t axes);
  int axis_of(const Tensor& x) { return static_cast<int>(draw_.whole(0, x.rank() - 1)); }

  Tensor step();
  Tensor unary(const Tensor& x);
  Tensor guarded(const Tensor& x);
  Tensor activation(const Tensor& x);
  Tensor binary(const Tensor& a, const Tensor& b);
  Tensor reduction(const Tensor& x);
  Tensor composite(const Tensor& x);
  Tensor view(const Tensor& x);
  Tensor arranged(const Tensor& x);
  Tensor indexed(const Tensor& x);
  Tensor along(const Tensor& x);
  Tensor whole(const Tensor& x);
  Tensor truth(const Tensor& x);
  Tensor random(const Tensor& x);
  Tensor product(const Tensor& x);
  Tensor image(const Tensor& x);
  Tensor attended(const Tensor& x);
  Tensor selected(const Tensor& x);
  Tensor joined(const Tensor& x);
  Tensor remembered(const Tensor& x);
  Tensor marked(const Tensor& x);
  Tensor halved(const Tensor& x);
  Tensor repeated_reads(Tensor x);
  Tensor read_by_many(const Tensor& x);
  Tensor padded(const Tensor& x);
  Tensor scattered(const Tensor& x);
  Tensor scaled(const Tensor& x);
  Tensor loss_of(const Tensor& x);

  Draw draw_;
  const RandomGraphOptions& options_;
  WeightSource weight_source_;
  std::vector<Tensor> pool_, leaves_;
  int inputs_ = 0, states_ = 0;
};

}  // namespace tensorgrad::testing
