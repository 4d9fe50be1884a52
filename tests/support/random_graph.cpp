// SPDX-License-Identifier: MIT
#include "support/random_graph.h"

#include <algorithm>
#include <numeric>

#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

// Grows a pool of f32 values of at most 3 axes; every op keeps its result near [-3, 3].
class Grower {
 public:
  Grower(Sketch& sketch, const RandomGraphOptions& options)
      : s_(sketch), draw_(sketch.draw), options_(options) {}

  void run() {
    for (int i = 0; i < 3; ++i) leaf();
    if (options_.updates) states();
    for (int i = 0; i < options_.ops; ++i) pool_.push_back(step());
    outputs();
    if (options_.gradients) gradients();
    if (options_.updates) updates();
  }

 private:
  Shape shape() {
    Shape shape;
    for (std::int64_t d = draw_.whole(1, 3); d > 0; --d) {
      shape.push_back(draw_.whole(1, options_.size));
    }
    return shape;
  }

  Tensor leaf() {
    leaves_.push_back(s_.input(shape(), -1.5, 1.5));
    pool_.push_back(leaves_.back());
    return leaves_.back();
  }

  void states() {
    const Shape one = shape();
    for (const char* name : {"first", "second"}) {
      states_.push_back(
          s_.leaf(ops::state, name, one, f32, s_.draw.values(f32, numel(one), -1, 1)));
      pool_.push_back(states_.back());
    }
  }

  // Late values are likelier: graphs grow deep, not wide.
  Tensor pick() {
    const auto size = static_cast<std::int64_t>(pool_.size());
    return pool_[static_cast<std::size_t>(
        std::max(draw_.whole(0, size - 1), draw_.whole(0, size - 1)))];
  }

  int axis_of(const Tensor& x) { return static_cast<int>(draw_.whole(0, x.rank() - 1)); }

  Tensor ranked(const Tensor& x) { return x.rank() == 0 ? reshape(x, {1}) : x; }

  // `x` in a shape that goes with `like`: cut to it, or grown by a reduction and a broadcast.
  Tensor fitted(const Tensor& x, const Shape& like) {
    if (x.shape() == like) return x;
    return broadcast_to(x.rank() == 0 ? x : mean(x), like);
  }

  Tensor unary(const Tensor& x) {
    switch (draw_.whole(0, 9)) {
      case 0: return tanh(x);
      case 1: return sigmoid(x);
      case 2: return sin(x);
      case 3: return relu(x) - 0.25;
      case 4: return gelu(x);
      case 5: return log1p(square(x));
      case 6: return rsqrt(square(x) + 1.0);
      case 7: return abs(x) * 0.7;
      case 8: return tanh(exp(tanh(x)) - 1.0);
      default: return x * 0.5 - 0.3;
    }
  }

  Tensor binary(const Tensor& a, const Tensor& b) {
    switch (draw_.whole(0, 6)) {
      case 0: return (a + b) * 0.7;
      case 1: return tanh(a * b);
      case 2: return a - b * 0.5;
      case 3: return maximum(a, b);
      case 4: return tensorgrad::where(a > b, a, b * 0.5);
      case 5: return a / (square(b) + 1.0);
      default: return minimum(a, 0.3 + b);
    }
  }

  Tensor reduce(const Tensor& x) {
    const Tensor in = ranked(x);
    const int axis = axis_of(in);
    const bool keep = draw_.chance(0.5);
    switch (draw_.whole(0, 5)) {
      case 0: return max(in, axis, keep);
      case 1: return min(in, axis, keep);
      case 2: return softmax(in, axis);
      case 3: return layer_norm(in);
      case 4: return logsumexp(in, axis, keep) * 0.5;
      default: return mean(in, axis, keep);
    }
  }

  Tensor view(const Tensor& x) {
    const Tensor in = ranked(x);
    const int axis = axis_of(in);
    const std::int64_t size = in.size(axis);
    switch (draw_.whole(0, 6)) {
      case 0: return flip(in, axis);
      case 1: return transpose(in, axis, axis_of(in));
      case 2: return reshape(in, {in.size(axis), -1});
      case 3: return pad(in, {draw_.whole(0, 2), draw_.whole(0, 2)}, draw_.chance(0.5) ? 0.0 : 0.5);
      case 4: return narrow(in, axis, draw_.whole(0, size - 1), 1);
      case 5: {
        const std::int64_t window = draw_.whole(1, std::min<std::int64_t>(3, size));
        const std::int64_t most = window > 1 ? (size - 1) / (window - 1) : 2;
        return unfold(in, axis, window, draw_.whole(1, 3), draw_.whole(1, most));
      }
      default: {
        const std::int64_t start = draw_.whole(0, size - 1);
        return narrow(in, axis, start, draw_.whole(1, size - start));
      }
    }
  }

  Tensor indexed(const Tensor& x) {
    const Tensor in = ranked(x);
    const int axis = axis_of(in);
    Shape shape = in.shape();
    shape[static_cast<std::size_t>(axis)] = draw_.whole(1, 4);
    const Tensor index = s_.input(shape, -1, static_cast<double>(in.size(axis)), i32);
    const Tensor picked = gather(in, axis, index);
    return draw_.chance(0.5) ? picked : scatter_add(in * 0.5, axis, index, picked * 0.3);
  }

  Tensor along(const Tensor& x) {
    const Tensor in = ranked(x);
    const int axis = axis_of(in);
    switch (draw_.whole(0, 6)) {
      case 0: return tanh(cumsum(in, axis));
      case 1: return cumprod(tanh(in), axis);
      case 2: return cummax(in, axis).values;
      case 3: return logcumsumexp(in, axis) * 0.5;
      case 4: return sort(in, axis, draw_.chance(0.5)).values;
      case 5: return topk(in, draw_.whole(1, in.size(axis)), axis).values;
      default: {
        const Tensor gate = sigmoid(fitted(pick(), in.shape()));
        return linear_recurrence(gate, in * 0.5, axis, std::nullopt, draw_.chance(0.5));
      }
    }
  }

  Tensor product(const Tensor& x) {
    Tensor in = ranked(x);
    if (in.rank() == 1) in = unsqueeze(in, draw_.chance(0.5) ? 0 : 1);
    const Shape inner = {in.size(-1), draw_.whole(1, 5)};
    if (draw_.chance(0.3)) return tanh(matmul(in, transpose(in)));
    const Tensor weight = draw_.chance(0.5) ? fitted(pick(), inner) : s_.input(inner, -0.6, 0.6);
    return tanh(matmul(in, weight) + s_.input({inner[1]}, -1, 1));
  }

  Tensor step() {
    const Tensor x = pick();
    if (x.shape().size() > 3 || numel(x.shape()) > 8 * options_.size * options_.size)
      return mean(x);
    switch (draw_.whole(0, 9)) {
      case 0:
      case 1: return unary(x);
      case 2:
      case 3: return binary(x, fitted(pick(), x.shape()));
      case 4: return reduce(x);
      case 5: return view(x);
      case 6: return indexed(x);
      case 7: return along(x);
      case 8: {
        const Tensor in = ranked(x);
        return concat({in, fitted(pick(), in.shape()), in * 0.5}, axis_of(in));
      }
      default: return product(x);
    }
  }

  void outputs() {
    s_.output("last", pool_.back());
    s_.output("some", pick());
    s_.output("same", pool_.back());
    s_.output("turned", transpose(reshape(pick(), {1, -1})));
  }

  void gradients() {
    Tensor loss = mean(square(pool_.back()));
    for (int i = 0; i < 2; ++i) loss = loss + mean(tanh(pick()));
    const std::vector<Tensor> grads = grad(loss, leaves_);
    for (std::size_t i = 0; i < grads.size(); ++i) s_.output("d" + std::to_string(i), grads[i]);
    s_.output("loss", loss);
    gradient_ = grads[0];
  }

  // Momentum: the new first is made of the old, the new second of both the old and the new first.
  // Now and then they are swapped, or one is read by an output that needs the old value.
  void updates() {
    const Tensor first = states_[0], second = states_[1];
    const Tensor source =
        gradient_.trace() != nullptr ? fitted(gradient_, first.shape()) : first * 0.1;
    const Tensor fresh = first * 0.9 + source;
    s_.output("old", first - second);
    const bool swap = draw_.chance(0.3);
    const Tensor other =
        draw_.chance(0.3) ? flip(second, 0) - fresh : second - fresh * 0.1 - first * 0.01;
    s_.graph().updates.push_back({first.id(), swap ? second.id() : fresh.id()});
    s_.graph().updates.push_back({second.id(), swap ? first.id() : other.id()});
  }

  Sketch& s_;
  Draw& draw_;
  const RandomGraphOptions& options_;
  std::vector<Tensor> pool_, leaves_, states_;
  Tensor gradient_;
};

}  // namespace

RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options) {
  Sketch sketch(seed * 0x9E3779B97F4A7C15ULL + 1);
  Grower(sketch, options).run();
  return {sketch.graph(), sketch.leaves};
}

}  // namespace tensorgrad::testing
