// SPDX-License-Identifier: MIT
// Evaluates the selective scan ops in double. Names are those of selective_scan.cpp.
#include <cmath>
#include <vector>

#include "ops/selective_scan.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// phi(z) = (e^z - 1) / z, and its derivative.
double phi(double z) { return z == 0 ? 1 : std::expm1(z) / z; }
double phi_slope(double z) {
  if (std::abs(z) >= SelectiveSizes::kSeriesBelow)
    return (z * std::exp(z) - std::expm1(z)) / (z * z);
  double sum = 0, power = 1, factorial = 1;
  for (int k = 0; k < 14; ++k) {
    factorial *= k + 2;
    sum += (k + 1) * power / factorial;
    power *= z;
  }
  return sum;
}

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }
double silu(double z) { return z * sigmoid(z); }
double silu_slope(double z) { return sigmoid(z) * (1 + z * (1 - sigmoid(z))); }

// The operands of a node, with helpers for each line: all steps of one state of one channel of one
// batch.
class SelectiveLines {
 public:
  explicit SelectiveLines(const EvalContext& ctx)
      : shape(*ctx.node.op, ctx.inputs[first(ctx)]->type.shape,
              ctx.inputs[first(ctx) + 1]->type.shape, ctx.node.attrs),
        s(shape.sizes),
        in_(ctx.inputs) {}

  // Calls visit(b, n, d) for each line.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t n = 0; n < s.states; ++n) {
        for (std::int64_t d = 0; d < s.channels; ++d) visit(b, n, d);
      }
    }
  }

  [[nodiscard]] std::size_t step(std::int64_t b, std::int64_t t, std::int64_t d) const {
    return static_cast<std::size_t>((b * s.length + t) * s.channels + d);
  }
  [[nodiscard]] std::size_t state(std::int64_t b, std::int64_t count, std::int64_t i,
                                  std::int64_t n, std::int64_t d) const {
    return static_cast<std::size_t>(((b * count + i) * s.states + n) * s.channels + d);
  }
  // Returns the index of A's gradient for a segment. Row `s.states` of A is D.
  [[nodiscard]] std::size_t rate(std::int64_t b, std::int64_t segment, std::int64_t n,
                                 std::int64_t d) const {
    return static_cast<std::size_t>(((b * s.segments() + segment) * s.rates() + n) * s.channels +
                                    d);
  }
  [[nodiscard]] bool has(SelectiveInput which) const { return shape.number(which) >= 0; }
  [[nodiscard]] double at(SelectiveInput which, std::size_t i) const {
    return in_[static_cast<std::size_t>(shape.number(which))]->data[i];
  }
  [[nodiscard]] double decay_rate(std::int64_t n, std::int64_t d) const {
    return at(SelectiveInput::kA, static_cast<std::size_t>(n * s.channels + d));
  }
  [[nodiscard]] double delta(std::int64_t b, std::int64_t t, std::int64_t d) const {
    const double given = at(SelectiveInput::kDelta, step(b, t, d));
    return shape.resets ? std::abs(given) : given;
  }
  // Returns true if the state before the step is treated as zero.
  [[nodiscard]] bool starts(std::int64_t b, std::int64_t t, std::int64_t d) const {
    return shape.resets && at(SelectiveInput::kDelta, step(b, t, d)) < 0;
  }
  [[nodiscard]] double a(std::int64_t b, std::int64_t t, std::int64_t n, std::int64_t d) const {
    return std::exp(delta(b, t, d) * decay_rate(n, d));
  }
  [[nodiscard]] double w(std::int64_t b, std::int64_t t, std::int64_t n, std::int64_t d) const {
    const double dt = delta(b, t, d);
    return shape.zero_order_hold ? dt * phi(dt * decay_rate(n, d)) : dt;
  }
  // Returns C or B.
  [[nodiscard]] double bc(bool of_c, std::int64_t b, std::int64_t t, std::int64_t n) const {
    return at(SelectiveInput::kBC, static_cast<std::size_t>((b * s.length + t) * 2 * s.states + n +
                                                            (of_c ? s.states : 0)));
  }
  // Returns the states after each step.
  [[nodiscard]] std::vector<double> run(std::int64_t b, std::int64_t n, std::int64_t d,
                                        double h) const {
    std::vector<double> states;
    for (std::int64_t t = 0; t < s.length; ++t) {
      if (starts(b, t, d)) h = 0;
      h = a(b, t, n, d) * h +
          w(b, t, n, d) * bc(false, b, t, n) * at(SelectiveInput::kU, step(b, t, d));
      states.push_back(h);
    }
    return states;
  }
  // Returns the gradient of o, i.e. before the gate.
  [[nodiscard]] double dungated(std::size_t i) const {
    const double dy = at(SelectiveInput::kDy, i);
    return s.gate ? dy * silu(at(SelectiveInput::kZ, i)) : dy;
  }
  [[nodiscard]] double skip(std::int64_t d) const { return s.skip ? decay_rate(s.states, d) : 0; }

  SelectiveShape shape;
  SelectiveSizes s;

 private:
  static std::size_t first(const EvalContext& ctx) {
    return ctx.node.op == &ops::selective_scan_adjoint ? 0 : 1;
  }
  std::span<const RefTensor* const> in_;
};

}  // namespace

void eval_selective(const EvalContext& ctx, RefTensor& out) {
  const SelectiveLines x(ctx);
  const SelectiveSizes& s = x.s;
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  const auto result = [&](std::size_t which) {
    return out.data.data() + s.start(SelectivePass::kForward, x.shape.keeps_states, which);
  };
  double *y = result(0), *last = result(1);
  double* ungated =
      s.gate && x.shape.keeps_states ? result(SelectiveSizes::kUngatedResult) : nullptr;
  double* states = x.shape.keeps_states ? result(s.states_result()) : nullptr;
  x.for_each([&](std::int64_t b, std::int64_t n, std::int64_t d) {
    const double initial = x.has(SelectiveInput::kInitial)
                               ? x.at(SelectiveInput::kInitial, x.state(b, 1, 0, n, d))
                               : 0;
    const std::vector<double> h = x.run(b, n, d, initial);
    for (std::int64_t t = 0; t < s.length; ++t) {
      const auto i = static_cast<std::size_t>(t);
      y[x.step(b, t, d)] += x.bc(true, b, t, n) * h[i];
      if (states == nullptr || t % SelectiveSizes::kChunk != 0) continue;
      states[x.state(b, s.chunks(), t / SelectiveSizes::kChunk, n, d)] =
          t == 0 ? initial : h[i - 1];
    }
    last[x.state(b, 1, 0, n, d)] = h.back();
  });
  for (std::size_t i = 0; i < static_cast<std::size_t>(s.steps()); ++i) {
    const auto d = static_cast<std::int64_t>(i) % s.channels;
    if (s.skip) y[i] += x.skip(d) * x.at(SelectiveInput::kU, i);
    if (ungated != nullptr) ungated[i] = y[i];
    if (s.gate) y[i] *= silu(x.at(SelectiveInput::kZ, i));
  }
}

void eval_adjoint(const EvalContext& ctx, RefTensor& out) {
  const SelectiveLines x(ctx);
  const SelectiveSizes& s = x.s;
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  x.for_each([&](std::int64_t b, std::int64_t n, std::int64_t d) {
    double e = x.has(SelectiveInput::kInitial)
                   ? x.at(SelectiveInput::kInitial, x.state(b, 1, 0, n, d))
                   : 0;
    out.data[x.state(b, s.segments(), s.segments() - 1, n, d)] = e;
    for (std::int64_t t = s.length; t-- > 0;) {
      e = x.a(b, t, n, d) * (x.bc(true, b, t, n) * x.at(SelectiveInput::kDy, x.step(b, t, d)) + e);
      if (x.starts(b, t, d)) e = 0;
      if (t == 0 || t % s.segment() != 0) continue;
      out.data[x.state(b, s.segments(), t / s.segment() - 1, n, d)] = e;
    }
  });
}

void eval_selective_grad(const EvalContext& ctx, RefTensor& out) {
  const SelectiveLines x(ctx);
  const SelectiveSizes& s = x.s;
  const bool hold = x.shape.zero_order_hold;
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  std::vector<double*> parts;
  double* next = out.data.data();
  for (const std::int64_t size : s.results(SelectivePass::kBackward, false)) {
    parts.push_back(next);
    next += size;
  }
  x.for_each([&](std::int64_t b, std::int64_t n, std::int64_t d) {
    const double rate = x.decay_rate(n, d);
    const double first = x.at(SelectiveInput::kStates, x.state(b, s.chunks(), 0, n, d));
    const std::vector<double> h = x.run(b, n, d, first);
    double e = x.has(SelectiveInput::kEnds)
                   ? x.at(SelectiveInput::kEnds, x.state(b, s.segments(), s.segments() - 1, n, d))
                   : 0;
    for (std::int64_t t = s.length; t-- > 0;) {
      const std::size_t at = x.step(b, t, d);
      const double dt = x.delta(b, t, d), u = x.at(SelectiveInput::kU, at);
      const double in = x.bc(false, b, t, n), a = x.a(b, t, n, d), w = x.w(b, t, n, d);
      const double dy = x.dungated(at), g = x.bc(true, b, t, n) * dy + e;
      e = a * g;
      if (x.starts(b, t, d)) e = 0;
      // Before a reset, the state may be infinite or NaN.
      const double before =
          x.starts(b, t, d) ? 0 : e * (t == 0 ? first : h[static_cast<std::size_t>(t) - 1]);
      parts[0][at] += g * w * in;
      parts[1][at] += rate * before + g * in * u * (hold ? a : 1);
      double* dbc = parts[2] + ((b * s.blocks() + d / s.block()) * s.length + t) * 2 * s.states;
      dbc[n] += g * w * u;
      dbc[s.states + n] += dy * h[static_cast<std::size_t>(t)];
      parts[3][x.rate(b, t / s.segment(), n, d)] +=
          dt * before + (hold ? g * in * u * dt * dt * phi_slope(dt * rate) : 0);
    }
    parts[4][x.state(b, 1, 0, n, d)] = e;
  });
  for (std::size_t i = 0; i < static_cast<std::size_t>(s.steps()); ++i) {
    const auto step = static_cast<std::int64_t>(i) / s.channels;
    const auto d = static_cast<std::int64_t>(i) % s.channels;
    if (s.skip) {
      parts[0][i] += x.skip(d) * x.dungated(i);
      parts[3][x.rate(step / s.length, step % s.length / s.segment(), s.states, d)] +=
          x.dungated(i) * x.at(SelectiveInput::kU, i);
    }
    if (!s.gate) continue;
    parts[5][i] = x.at(SelectiveInput::kDy, i) * x.at(SelectiveInput::kUngated, i) *
                  silu_slope(x.at(SelectiveInput::kZ, i));
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
