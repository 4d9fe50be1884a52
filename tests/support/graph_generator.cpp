// SPDX-License-Identifier: MIT
#include "support/graph_generator.h"

#include <algorithm>

#include "ops/registry.h"

namespace tensorgrad::testing {

Shape GraphGenerator::shape() {
  Shape shape;
  for (std::int64_t d = draw_.whole(1, 3); d > 0; --d) {
    shape.push_back(draw_.chance(0.15) ? 1 : draw_.whole(1, options_.size));
  }
  return shape;
}

Tensor GraphGenerator::input(const Shape& shape, DType dtype) {
  Trace& trace = Trace::current("input", {});
  return trace.tensor(trace.graph.add(ops::input, {},
                                      {{"name", "in" + std::to_string(inputs_++)},
                                       {"dtype", static_cast<std::int64_t>(dtype)},
                                       {"shape", shape}}));
}

Tensor GraphGenerator::weight(const Shape& shape) {
  weights.push_back(shape);
  return weight_source_(weights.size() - 1, shape);
}

// Prefers recent values, so that graphs grow deep rather than wide.
Tensor GraphGenerator::pick() {
  const auto size = static_cast<std::int64_t>(pool_.size());
  return pool_[static_cast<std::size_t>(
      std::max(draw_.whole(0, size - 1), draw_.whole(0, size - 1)))];
}

namespace {

Tensor ranked(const Tensor& x) { return x.rank() == 0 ? reshape(x, {1}) : x; }

}  // namespace

// Returns `x`, or its mean broadcast if the shapes differ, in the shape `like`.
Tensor GraphGenerator::fitted(const Tensor& x, const Shape& like) {
  if (x.shape() == like) return x;
  return broadcast_to(x.rank() == 0 ? x : mean(x), like);
}

// Returns some value as a tensor of this many axes.
Tensor GraphGenerator::grid(std::int64_t axes) {
  Tensor x = ranked(pick());
  while (x.rank() > axes) x = flatten(x, 0, 1);
  while (x.rank() < axes) x = unsqueeze(x, static_cast<int>(draw_.whole(0, x.rank())));
  return x;
}

Tensor GraphGenerator::unary(const Tensor& x) {
  switch (draw_.whole(0, 12)) {
    case 0: return tanh(x);
    case 1: return sigmoid(x);
    case 2: return sin(x) - cos(x) * 0.5;
    case 3: return relu(x) - 0.25;
    case 4: return abs(x) * 0.7;
    case 5: return tanh(exp(tanh(x)) - 1.0);
    case 6: return erf(x);
    case 7: return asinh(x);
    case 8: return softplus(x) - 0.5;
    case 9: return sinh(tanh(x)) * 0.5;
    case 10: return tan(tanh(x) * 0.7);
    case 11: return expm1(tanh(x)) + exp2(tanh(x)) * 0.3;
    default: return x * 0.5 - 0.3;
  }
}

// Applies partial functions to arguments in their domain.
Tensor GraphGenerator::guarded(const Tensor& x) {
  const Tensor positive = square(x) + 0.5, within = tanh(x) * 0.7;
  switch (draw_.whole(0, 11)) {
    case 0: return log1p(square(x));
    case 1: return rsqrt(positive);
    case 2: return sqrt(positive) * 0.5;
    case 3: return log(positive);
    case 4: return reciprocal(positive) * 0.5;
    case 5: return acosh(positive + 0.7);
    case 6: return atanh(within);
    case 7: return log2(positive) * 0.3;
    case 8: return pow(positive, draw_.real(-1.5, 1.0));
    case 9: return pow(within + 1.0, within);
    case 10: return asin(within);
    default: return atan2(x, positive);
  }
}

Tensor GraphGenerator::activation(const Tensor& x) {
  switch (draw_.whole(0, 9)) {
    case 0: return gelu(x);
    case 1: return gelu(x, GeluApproximation::kTanh);
    case 2: return silu(x);
    case 3: return elu(x);
    case 4: return leaky_relu(x, 0.1);
    case 5: return hardswish(x);
    case 6: return mish(x) * 0.5;
    case 7: return logsigmoid(x) * 0.5;
    case 8: return clamp(x, -0.6, 0.9);
    default: return softsign(x);
  }
}

Tensor GraphGenerator::binary(const Tensor& a, const Tensor& b) {
  switch (draw_.whole(0, 10)) {
    case 0: return (a + b) * 0.7;
    case 1: return tanh(a * b);
    case 2: return a - b * 0.5;
    case 3: return maximum(a, b);
    case 4: return where(a > b, a, b * 0.5);
    case 5: return a / (square(b) + 1.0);
    case 6: return atan2(a, square(b) + 0.5);
    case 7: return fmod(a, abs(b) + 0.7);
    case 8: return lerp(a, b, 0.3);
    case 9: return hypot(a, b) * 0.6;
    default: return minimum(a, 0.3 + b);
  }
}

Tensor GraphGenerator::reduction(const Tensor& x) {
  const Tensor in = ranked(x);
  std::vector<int> axes = {axis_of(in)};
  if (draw_.chance(0.3)) axes.push_back((axes[0] + 1) % static_cast<int>(in.rank()));
  if (axes.size() == 2 && axes[0] == axes[1]) axes.pop_back();
  const Axes over = axes;
  const bool keep = draw_.chance(0.5);
  switch (draw_.whole(0, 7)) {
    case 0: return max(in, over, keep);
    case 1: return min(in, over, keep);
    case 2: return sum(in, over, keep) * 0.3;
    case 3: return logsumexp(in, over, keep) * 0.5;
    case 4: return prod(tanh(in) + 0.5, over, keep);
    case 5: return var(in, over, 0, keep);
    case 6: return norm(in + 0.1, 2, over, keep) * 0.5;
    default: return mean(in, over, keep);
  }
}

Tensor GraphGenerator::composite(const Tensor& x) {
  const Tensor in = ranked(x);
  const Shape last = {in.size(-1)};
  switch (draw_.whole(0, 5)) {
    case 0: return softmax(in, axis_of(in));
    case 1: return log_softmax(in, axis_of(in)) * 0.4;
    case 2: return layer_norm(in, weight(last), weight(last), 0.1);
    case 3: return rms_norm(in, weight(last), 0.1);
    case 4: return normalize(in + 0.1, axis_of(in), 0.1);
    default: return in / (mean(abs(in), axis_of(in), true) + 0.3);
  }
}

Tensor GraphGenerator::view(const Tensor& x) {
  const Tensor in = ranked(x);
  const int axis = axis_of(in);
  const std::int64_t size = in.size(axis);
  switch (draw_.whole(0, 7)) {
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
    case 6: return in.rank() == 3 ? flatten(in, 1) : expand(unsqueeze(in, 0), {2, -1, -1});
    default: {
      const std::int64_t start = draw_.whole(0, size - 1);
      return narrow(in, axis, start, draw_.whole(1, size - start));
    }
  }
}

Tensor GraphGenerator::arranged(const Tensor& x) {
  const Tensor in = ranked(x);
  const int axis = axis_of(in);
  switch (draw_.whole(0, 5)) {
    case 0: return roll(in, {draw_.whole(-2, 2)}, {axis});
    case 1: return repeat_interleave(in, 2, axis);
    case 2: return in.rank() >= 2 ? tril(in, draw_.whole(-1, 1)) : diag(in);
    case 3: return pad(in, {draw_.whole(0, 2), draw_.whole(0, 2)}, PadMode::kReplicate);
    case 4: return in.rank() >= 2 ? diagonal(in) : tile(in, {2});
    default: return chunk(in, 2, axis).back();
  }
}

// Uses indices from inputs, some of them out of range: these read 0 and write nothing.
Tensor GraphGenerator::indexed(const Tensor& x) {
  const Tensor in = ranked(x);
  const int axis = axis_of(in);
  Shape shape = in.shape();
  shape[static_cast<std::size_t>(axis)] = draw_.whole(1, 4);
  Tensor index = input(shape, i32);
  if (draw_.chance(0.3)) index = index + draw_.whole(-1, 1);
  switch (draw_.whole(0, 5)) {
    case 0: return scatter_add(in * 0.5, axis, index, gather(in, axis, index) * 0.3);
    case 1: return index_select(in, axis, input({draw_.whole(1, 4)}, i32));
    case 2: return embedding(input({2, 3}, i32), weight({draw_.whole(1, 6), draw_.whole(1, 4)}));
    case 3: {
      const Tensor rows = input({draw_.whole(1, 4)}, i32);
      Shape source = in.shape();
      source[static_cast<std::size_t>(axis)] = rows.size(0);
      return index_add(in, axis, rows, fitted(pick(), source) * 0.3);
    }
    case 4: return index_update(in, axis, narrow(index, axis, 0, 1), fitted(pick(), shape) * 0.7);
    default: return gather(in, axis, index);
  }
}

Tensor GraphGenerator::along(const Tensor& x) {
  const Tensor in = ranked(x);
  const int axis = axis_of(in);
  switch (draw_.whole(0, 8)) {
    case 0: return tanh(cumsum(in, axis));
    case 1: return cumprod(tanh(in), axis);
    case 2: return cummax(in, axis).values;
    case 3: return cummin(in, axis).values;
    case 4: return logcumsumexp(in, axis) * 0.5;
    case 5: return sort(in, axis, draw_.chance(0.5)).values;
    case 6: return topk(in, draw_.whole(1, in.size(axis)), axis).values;
    case 7: return selected(x);
    default: {
      const Tensor gate = sigmoid(fitted(pick(), in.shape()));
      return linear_recurrence(gate, in * 0.5, axis, std::nullopt, draw_.chance(0.5));
    }
  }
}

// Converts to integers and back. The integers come from inputs, or from values that rounding does
// not change. A cast of a rounded value would not be comparable.
Tensor GraphGenerator::whole(const Tensor& x) {
  const Tensor in = ranked(x);
  const DType dtype = draw_.chance(0.5) ? i32 : u32;
  const Tensor a = input(in.shape(), dtype), b = input(in.shape(), dtype);
  const auto small = [](const Tensor& n) { return cast(n, f32) * 0.1 - 0.3; };
  switch (draw_.whole(0, 9)) {
    case 0: return in + small(a + b * 3);
    case 1: return in * small(maximum(a, b) - minimum(a, b));
    case 2: return in - small(fmod(a * b, 7));
    case 3: return in + small(bitwise_and(bitwise_xor(a, bitwise_not(b)), 5)) * 0.5;
    case 4: return where(a < b, in, in * 0.5);
    case 5: return in + small(bitwise_right_shift(bitwise_or(bitwise_left_shift(a, 2), b), 1));
    case 6: return in + small(a / (b + 1));
    case 7: return in + small(sum(a, axis_of(in), true));
    case 8: return in * small(max(b, axis_of(in), true));
    default: return in + small(fmod(cumsum(a, axis_of(in)), 9));
  }
}

Tensor GraphGenerator::truth(const Tensor& x) {
  const Tensor in = ranked(x), other = fitted(pick(), in.shape());
  const Tensor yes = in > other, no = other < 0.2;
  switch (draw_.whole(0, 8)) {
    case 0: return where(yes && no, in, other * 0.5);
    case 1: return where(yes || !no, in, 0.3);
    case 2: return in * cast(logical_xor(yes, no), f32);
    case 3: return masked_fill(in, no, 0.25);
    case 4: return where(any(yes, axis_of(in), true), in, -in);
    case 5: {
      const int axis = axis_of(in);
      const Tensor place = draw_.chance(0.5) ? argmax(in, axis, true) : argmin(in, axis, true);
      return in + cast(place, f32) * 0.1;
    }
    case 6: return in + detach(round(other * 3.0) - floor(in) * 0.5) * 0.2;
    case 7: return in - detach(ceil(other) * trunc(in * 2.0)) * 0.2;
    default: return where(isfinite(in), in, detach(other));
  }
}

Tensor GraphGenerator::random(const Tensor& x) {
  switch (draw_.whole(0, 5)) {
    case 0: return dropout(x, 0.3) * 0.7;
    case 1: return x + rand(x.shape()) * 0.3;
    case 2: return x + uniform(x.shape(), -1, 1) * 0.5;
    case 3: return where(bernoulli(x.shape(), 0.4) > 0.5, x, -x);
    case 4: return x + clamp(randn(x.shape()), -2, 2) * 0.2;
    default: return x * cast(randint(x.shape(), 0, 3), f32) * 0.5;
  }
}

Tensor GraphGenerator::product(const Tensor& x) {
  Tensor in = ranked(x);
  if (in.rank() == 1) in = unsqueeze(in, draw_.chance(0.5) ? 0 : 1);
  const std::int64_t n = draw_.whole(1, options_.size);
  const Shape inner = {in.size(-1), n};
  switch (draw_.whole(0, 5)) {
    case 0: return tanh(matmul(in, transpose(in)));
    case 1: return tanh(linear(in, weight({n, in.size(-1)}), weight({n})));
    case 2: return tanh(matmul(in, fitted(pick(), inner)) + weight({n}));
    case 3: return gelu(matmul(in, weight(inner)) + weight({n}));
    case 4: return tanh(einsum("...i,ij->j...", {in, weight(inner)}));
    default: return tanh(matmul(transpose(in), matmul(in, weight(inner)) * 0.3) * 0.3);
  }
}

Tensor GraphGenerator::image(const Tensor& x) {
  Tensor in = ranked(x);
  while (in.rank() < 3) in = unsqueeze(in, 0);
  const std::int64_t channels = in.size(0), h = in.size(1), w = in.size(2);
  const std::int64_t kernel = draw_.whole(1, 3), stride = draw_.whole(1, 2), outs = 2;
  const std::int64_t padding = std::max((kernel - std::min(h, w) + 1) / 2, draw_.whole(0, 1));
  in = unsqueeze(in, 0);
  const Tensor line = flatten(in, 2);
  switch (draw_.whole(0, 8)) {
    case 0: {
      const Tensor kernels = weight({outs, channels, kernel, kernel});
      const Conv2dOptions how = {.stride = stride, .padding = padding};
      return tanh(squeeze(conv2d(in, kernels, weight({outs}), how), 0));
    }
    case 1: {
      const Tensor kernels = weight({channels, outs, kernel, kernel});
      return tanh(squeeze(conv_transpose2d(in, kernels, std::nullopt, {.stride = stride}), 0));
    }
    case 2: {
      const Tensor kernels = weight({channels, 1, kernel});
      const Conv1dOptions how = {.padding = kernel - 1, .groups = channels};
      return tanh(squeeze(conv1d(line, kernels, std::nullopt, how), 0));
    }
    case 3: return squeeze(avg_pool2d(in, {std::min(h, kernel), std::min(w, kernel)}), 0);
    case 4: {
      const Size2d size = {std::min(h, kernel), std::min(w, kernel)};
      return squeeze(max_pool2d(in, size, {.stride = stride}), 0);
    }
    case 5: return squeeze(adaptive_avg_pool2d(in, {2, 3}), 0);
    case 6: {  // gradient inside the forward pass; has second-order gradients
      const Tensor one = max_pool2d(in, {std::min<std::int64_t>(h, 2), 1});
      return squeeze(grad(sum(square(one)), {in})[0], 0) * 0.5;
    }
    case 7: return squeeze(interpolate(in, {h + 1, 2 * w}, Interpolation::kBilinear), 0);
    default: return squeeze(max_pool1d(line, std::min(line.size(-1), kernel)), 0);
  }
}

Tensor GraphGenerator::attended(const Tensor& x) {
  const Tensor q = grid(3);
  const std::int64_t keys = draw_.whole(1, options_.size);
  const Shape like = {q.size(0), keys, q.size(2)};
  const Tensor k = fitted(x, like) * weight(like), v = fitted(pick(), like) * weight({q.size(2)});
  AttentionOptions how{.causal = draw_.chance(0.4)};
  if (draw_.chance(0.3)) how.mask = input({q.size(1), keys}, i32) > 2;
  if (draw_.chance(0.2)) how.dropout = 0.25;
  const Tensor y = scaled_dot_product_attention(q, k, v, how);
  return q.size(2) % 2 == 0 && draw_.chance(0.5) ? rope(y) : y;
}

Tensor GraphGenerator::selected(const Tensor& x) {
  const Tensor u = grid(3);
  const std::int64_t states = draw_.whole(1, 4);
  const Shape gates = {u.size(0), u.size(1), states};
  const Tensor delta = sigmoid(fitted(x, u.shape())) * 0.7;
  const Tensor rates = -sigmoid(weight({u.size(2), states})) - 0.1;
  SelectiveScanOptions how;
  if (draw_.chance(0.3)) how.initial_state = weight({u.size(0), u.size(2), states});
  if (draw_.chance(0.3)) how.discretization = Discretization::kZeroOrderHold;
  if (draw_.chance(0.3)) how.D = weight({u.size(2)});
  if (draw_.chance(0.3)) how.z = fitted(pick(), u.shape());
  const Tensor in = fitted(pick(), gates), out = weight({states});
  const SelectiveScan scan = selective_scan(u, delta, rates, in, broadcast_to(out, gates), how);
  return draw_.chance(0.7) ? scan.y : scan.state;
}

Tensor GraphGenerator::joined(const Tensor& x) {
  const Tensor in = ranked(x), other = fitted(pick(), in.shape());
  const Tensor both = in.rank() < 3 && draw_.chance(0.3)
                          ? stack({in, other}, axis_of(in))
                          : concat({in, other, in * 0.5}, axis_of(in));
  return draw_.chance(0.3) ? both : narrow(both, 0, draw_.whole(0, both.size(0) - 1), 1);
}

// Reads a state and sets it to a function of its old value.
Tensor GraphGenerator::remembered(const Tensor& x) {
  const std::string name = "kept" + std::to_string(states_++);
  const Tensor old = state(name, x.shape(), draw_.real(-0.5, 0.5));
  if (x.rank() > 0 && draw_.chance(0.4)) {
    const int axis = axis_of(x);
    const Tensor lines = narrow(x, axis, 0, draw_.whole(1, x.size(axis)));
    const Tensor filled = index_update(old, axis, input({}, i32), detach(lines) * 0.6);
    set_state(name, filled);
    return draw_.chance(0.7) ? filled + x : x - old;
  }
  const Tensor fresh = old * 0.9 + x * 0.1;
  set_state(name, detach(fresh));
  return draw_.chance(0.5) ? fresh : x - old;
}

Tensor GraphGenerator::marked(const Tensor& x) {
  if (draw_.chance(0.3)) {
    return custom_gradient(
        {x}, [](const std::vector<Tensor>& in) { return tanh(in[0]); },
        [](const std::vector<Tensor>&, Tensor y, Tensor dy) {
          return std::vector<Tensor>{dy * (1.0 - y * y) * 0.5};
        });
  }
  const Tensor other = fitted(pick(), x.shape());
  return checkpoint([](const std::vector<Tensor>& in) { return sin(tanh(in[0] * in[1]) + in[0]); },
                    {x, other});
}

// Stores, moves or computes values as f16.
Tensor GraphGenerator::halved(const Tensor& x) {
  const Tensor half = cast(ranked(x), f16);
  const int axis = axis_of(half);
  switch (draw_.whole(0, 8)) {
    case 0: return cast(flip(half, axis), f32) * 0.5;
    case 1: return cast(concat({half, narrow(half, axis, 0, 1)}, axis), f32);
    case 2: return cast(pad(half, {1, draw_.whole(0, 2)}), f32);
    case 3: return cast(half * 0.5 - half * half * 0.1, f32);
    case 4: return cast(softmax(half, axis), f32) + fitted(pick(), half.shape()) * half * 0.3;
    case 5: return cast(index_select(half, axis, input({draw_.whole(1, 4)}, i32)), f32);
    case 6: return cast(half * input({half.size(-1)}, f16), f32);
    case 7: return x * 0.6 + round_to_f16(x) * 0.3;
    default: return cast(half, f32);
  }
}

// A sequence of ops of one kind, each of which reads the previous result several times.
Tensor GraphGenerator::repeated_reads(Tensor x) {
  x = ranked(x);
  const int axis = axis_of(x), last = static_cast<int>(x.rank()) - 1;
  const std::int64_t size = x.size(axis), columns = x.size(last), kind = draw_.whole(0, 8);
  const std::int64_t links = draw_.chance(0.1) ? draw_.whole(10, 30) : draw_.whole(2, 5);
  const Shape shape = x.shape(), row = {1, numel(shape) / columns, columns};
  const auto line = [&] { return pad(reshape(x, row), {1, 0}); };
  for (std::int64_t i = 0; i < links; ++i) {
    switch (kind) {
      case 0: x = (x + roll(x, {draw_.whole(-2, 2)}, {axis})) * 0.6; break;
      case 1: x = x * 0.7 - flip(x, axis) * 0.4; break;
      case 2: x = x * 0.6 + reshape(transpose(x, axis, last), shape) * 0.5; break;
      case 3: x = x + narrow(pad(x, {1, 0}), last, 0, columns) * 0.2; break;
      case 4: x = x * 0.5 + reshape(max_pool1d(line(), 2, {.stride = 1}), shape) * 0.5; break;
      case 5: x = x * 0.5 + reshape(avg_pool1d(line(), 2, {.stride = 1}), shape) * 0.6; break;
      case 6: {
        const Tensor wide = pad(x, {1, 1}, PadMode::kCircular);
        x = narrow(wide, last, 0, columns) * 0.6 - narrow(wide, last, 2, columns) * 0.5;
        break;
      }
      case 7: {
        const std::int64_t half = (size + 1) / 2;  // parts overlap, so that none is empty
        x = narrow(concat({narrow(x, axis, size - half, half), narrow(x, axis, 0, half)}, axis),
                   axis, 0, size) *
                0.9 +
            x * 0.1;
        break;
      }
      default: x = maximum(x * 0.9, mean(x, axis, true)); break;
    }
  }
  return x;
}

// A value with more readers than a launch has bindings.
Tensor GraphGenerator::read_by_many(const Tensor& x) {
  const Tensor in = ranked(x);
  Tensor y = in * 0.5;
  for (std::int64_t i = draw_.whole(3, 12); i > 0; --i) {
    const double factor = draw_.real(-0.4, 0.4);
    switch (draw_.whole(0, 3)) {
      case 0: y = y + mean(in * factor); break;
      case 1: y = y + tanh(in * factor) * 0.3; break;
      case 2: y = y - mean(square(in), axis_of(in), true) * (factor * 0.2); break;
      default: y = y + max(in, axis_of(in), true) * (factor * 0.3); break;
    }
  }
  return tanh(y);
}

// Uneven padding on several axes of values and windows, also in f16.
Tensor GraphGenerator::padded(const Tensor& x) {
  Tensor in = grid(3);
  const std::int64_t h = in.size(1), w = in.size(2);
  const bool half = draw_.chance(0.5);
  if (half) in = cast(in, f16);
  const auto as_f32 = [](const Tensor& y) { return cast(y, f32); };
  const auto most = [](std::int64_t n, std::int64_t limit) { return std::min(n, limit); };
  switch (draw_.whole(0, 5)) {
    case 0:
      return as_f32(
          pad(in, {draw_.whole(0, 3), draw_.whole(0, 3), draw_.whole(0, 3), 0, 1, 0}, 0.25));
    case 1:
      return as_f32(pad(in,
                        {draw_.whole(0, most(w - 1, 2)), draw_.whole(0, most(w - 1, 2)),
                         draw_.whole(0, most(h - 1, 2)), 0},
                        PadMode::kReflect));
    case 2:
      return as_f32(pad(in, {draw_.whole(0, w), draw_.whole(0, w), 0, draw_.whole(0, h)},
                        PadMode::kCircular));
    case 3: {
      const Size2d window = {most(h, 3), most(w, 2)};
      const MaxPool2dOptions how = {.stride = Size2d{1, 2},
                                    .padding = {window.h / 2, window.w / 2}};
      return as_f32(squeeze(max_pool2d(unsqueeze(in, 0), window, how), 0));
    }
    case 4: {
      const Size2d window = {most(h, 2), most(w, 3)};
      const AvgPool2dOptions how = {.stride = Size2d{2, 1},
                                    .padding = {window.h / 2, window.w / 2},
                                    .count_include_pad = draw_.chance(0.5)};
      return as_f32(squeeze(avg_pool2d(unsqueeze(in, 0), window, how), 0));
    }
    default: return x + as_f32(mean(as_f32(adaptive_max_pool2d(unsqueeze(in, 0), {2, 1})))) * 0.5;
  }
}

// Scatters to few targets, so that most indices are duplicates.
Tensor GraphGenerator::scattered(const Tensor& x) {
  const Tensor in = ranked(x);
  const int axis = axis_of(in);
  Shape shape = in.shape();
  shape[static_cast<std::size_t>(axis)] = draw_.whole(2, 9);
  const Tensor source = fitted(pick(), shape);
  const Tensor index = fmod(input(shape, i32), draw_.whole(1, 2));
  switch (draw_.whole(0, 4)) {
    case 0: return scatter(in, axis, index, source * 0.5);
    case 1: return scatter_max(in * 0.5, axis, index, source);
    case 2: return scatter_min(in * 0.5, axis, index, source);
    case 3: {
      const Tensor rows = fmod(input({source.size(axis)}, i32), 2);
      return tanh(index_add(in, axis, rows, source * 0.4));
    }
    default: return tanh(scatter_add(in, axis, index, source * 0.4));
  }
}

// Computes with values near the limits of f32.
Tensor GraphGenerator::scaled(const Tensor& x) {
  const Tensor in = ranked(x);
  const int axis = axis_of(in);
  switch (draw_.whole(0, 9)) {
    case 0: return (in * 1e18) * 1e-18;
    case 1: return (in * 1e-30) * 1e30;
    case 2: return sigmoid(in * 1e5) * 0.5 + in * 0.5;
    case 3: return softmax(in * 300.0, axis);
    case 4: return logsumexp(in * 1e4, axis, true) * 1e-4 + in * 0.5;
    case 5: return hypot(in * 1e25, fitted(pick(), in.shape()) * 1e25) * 0.5e-25;
    case 6: return tanh(max(in * 1e30, axis, true) * 1e-30 + in);
    case 7: return log1p(square(in * 1e15)) * 0.02;
    case 8: return log_softmax(in * 1e3, axis) * 1e-3;
    default: return where(in * 1e38 > 1e37, in, in * 0.5);
  }
}

Tensor GraphGenerator::step() {
  const Tensor x = pick();
  if (x.rank() > 3 || numel(x.shape()) > 8 * options_.size * options_.size) return mean(x);
  switch (draw_.whole(0, 30)) {
    case 0:
    case 1: return unary(x);
    case 2: return guarded(x);
    case 3: return activation(x);
    case 4:
    case 5: return binary(x, fitted(pick(), x.shape()));
    case 6:
    case 7: return reduction(x);
    case 8: return composite(x);
    case 9:
    case 10: return view(x);
    case 11: return arranged(x);
    case 12:
    case 13: return indexed(x);
    case 14: return along(x);
    case 15: return whole(x);
    case 16: return truth(x);
    case 17: return random(x);
    case 18: return joined(x);
    case 19: return image(x);
    case 20: return attended(x);
    case 21: return draw_.chance(0.5) ? remembered(x) : marked(x);
    case 22:
    case 23: return halved(x);
    case 24: return repeated_reads(x);
    case 25: return read_by_many(x);
    case 26: return padded(x);
    case 27: return scattered(x);
    case 28: return scaled(x);
    default: return product(x);
  }
}

Tensor GraphGenerator::loss_of(const Tensor& x) {
  const Tensor in = ranked(x);
  switch (draw_.whole(0, 4)) {
    case 0: return mse(in, detach(fitted(pick(), in.shape())) + 0.5);
    case 1: return huber_loss(in, fitted(pick(), in.shape()) - 0.5);
    case 2: {
      Shape rows = in.shape();
      rows.pop_back();
      return cross_entropy(in, input(rows, i32));
    }
    case 3: return binary_cross_entropy_with_logits(in, sigmoid(fitted(pick(), in.shape())));
    default: return mean(square(in + 0.3));
  }
}

Tensor GraphGenerator::run() {
  for (int i = 0; i < 2; ++i) pool_.push_back(leaves_.emplace_back(input(shape())));
  pool_.push_back(weight(shape()));
  for (int i = 0; i < options_.ops; ++i) pool_.push_back(step());
  const Tensor last = pool_.back();
  Tensor loss = loss_of(last) + mean(square(pool_[2])) * 0.1;  // trains a weight
  for (std::int64_t i = draw_.whole(0, 2); i > 0; --i) loss = loss + loss_of(pick()) * 0.5;
  if (draw_.chance(0.15)) {  // second-order gradients of the parameters
    for (const Tensor& each : grad(loss, {pool_[0]})) loss = loss + mean(square(each)) * 0.1;
  }
  if (draw_.chance(0.3)) {  // another loss, differentiated with respect to the leaves
    const std::vector<Tensor> asked = grad(loss_of(pick()), leaves_);
    for (std::size_t i = 0; i < asked.size(); ++i)
      outputs.emplace_back("d in" + std::to_string(i), asked[i]);
  }
  outputs.emplace_back("last", last);
  outputs.emplace_back("some", pick());
  outputs.emplace_back("same", last);
  outputs.emplace_back("turned", transpose(reshape(pick(), {1, -1})));
  return loss;
}

}  // namespace tensorgrad::testing
