// SPDX-License-Identifier: MIT
#include "state_space_loops.h"

namespace tensorgrad::testing {

ScanResults one_by_one(const SelectiveGiven& g, Discretization discretization) {
  ScanResults r{Values(g.u.size(), 0), g.initial};
  for (std::int64_t b = 0; b < g.batch; ++b) {
    for (std::int64_t d = 0; d < g.channels; ++d) {
      for (std::int64_t n = 0; n < g.states; ++n) {
        double& h = r.state[static_cast<std::size_t>((b * g.channels + d) * g.states + n)];
        const double rate = g.rates[static_cast<std::size_t>(d * g.states + n)];
        for (std::int64_t t = 0; t < g.length; ++t) {
          const auto step = static_cast<std::size_t>((b * g.length + t) * g.channels + d);
          const auto gate = static_cast<std::size_t>((b * g.length + t) * g.states + n);
          const double delta = g.delta[step];
          const double w =
              discretization == Discretization::kEuler ? delta : std::expm1(delta * rate) / rate;
          h = std::exp(delta * rate) * h + w * g.in[gate] * g.u[step];
          r.y[step] += g.out[gate] * h;
        }
      }
    }
  }
  for (std::size_t i = 0; i < r.y.size(); ++i) {
    const double open = r.y[i] + g.skip[i % static_cast<std::size_t>(g.channels)] * g.u[i];
    r.y[i] = open * g.z[i] / (1 + std::exp(-g.z[i]));
  }
  return r;
}

ScanResults one_by_one(const SsdGiven& g) {
  ScanResults r{Values(g.x.size(), 0), g.initial};
  for (std::int64_t b = 0; b < g.batch; ++b) {
    for (std::int64_t t = 0; t < g.length; ++t) {
      const std::int64_t step = b * g.length + t;
      for (std::int64_t h = 0; h < g.heads; ++h) {
        const double dt = g.dt[static_cast<std::size_t>(step * g.heads + h)];
        const double a = std::exp(dt * g.rates[static_cast<std::size_t>(h)]);
        const std::int64_t group = h * g.groups / g.heads;
        for (std::int64_t p = 0; p < g.width; ++p) {
          const auto at = static_cast<std::size_t>((step * g.heads + h) * g.width + p);
          for (std::int64_t n = 0; n < g.states; ++n) {
            const auto gate = static_cast<std::size_t>((step * g.groups + group) * g.states + n);
            double& state =
                r.state[static_cast<std::size_t>(((b * g.heads + h) * g.width + p) * g.states + n)];
            state = a * state + dt * g.x[at] * g.in[gate];
            r.y[at] += state * g.out[gate];
          }
        }
      }
    }
  }
  return r;
}

ScanResults one_by_one(const RotaryGiven& g) {
  const std::int64_t pairs = g.states / 2;
  ScanResults r{Values(g.x.size(), 0),
                Values(static_cast<std::size_t>(g.batch * g.heads * g.width * g.states), 0)};
  Values before(r.state.size(), 0), phase(static_cast<std::size_t>(g.batch * g.heads * pairs), 0);
  for (std::int64_t step = 0; step < g.batch * g.length; ++step) {
    for (std::int64_t h = 0; h < g.heads; ++h) {
      const std::int64_t head = step * g.heads + h, line = step / g.length * g.heads + h;
      const auto at = static_cast<std::size_t>(head);
      const double dt = g.dt[at], a = std::exp(dt * g.rates[at]), lambda = g.lambda[at];
      for (std::int64_t i = 0; i < pairs; ++i)
        phase[static_cast<std::size_t>(line * pairs + i)] +=
            dt * g.theta[static_cast<std::size_t>(head * pairs + i)];
      const auto turned = [&](const Values& from, std::int64_t rank, std::int64_t n) {
        const std::int64_t row = (head * g.ranks + rank) * g.states, i = n % pairs;
        const double one = from[static_cast<std::size_t>(row + i)];
        const double two = from[static_cast<std::size_t>(row + i + pairs)];
        const double angle = phase[static_cast<std::size_t>(line * pairs + i)];
        return n < pairs ? one * std::cos(angle) + two * std::sin(angle)
                         : two * std::cos(angle) - one * std::sin(angle);
      };
      for (std::int64_t p = 0; p < g.width; ++p) {
        for (std::int64_t n = 0; n < g.states; ++n) {
          double v = 0;
          for (std::int64_t k = 0; k < g.ranks; ++k)
            v += g.x[static_cast<std::size_t>((head * g.ranks + k) * g.width + p)] *
                 turned(g.in, k, n);
          const auto i = static_cast<std::size_t>((line * g.width + p) * g.states + n);
          double& state = r.state[i];
          state = a * state + (1 - lambda) * dt * a * before[i] + lambda * dt * v;
          before[i] = v;
          for (std::int64_t k = 0; k < g.ranks; ++k)
            r.y[static_cast<std::size_t>((head * g.ranks + k) * g.width + p)] +=
                state * turned(g.out, k, n);
        }
      }
    }
  }
  return r;
}

void expect_near(const Values& got, const Values& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - want[i]) <= tolerance * (1 + std::abs(want[i]))) continue;
    FAIL() << what << ", element " << i << " is " << got[i] << ", should be " << want[i];
  }
}

Tensor weighted(GraphBuilder& s, const Tensor& y, const Tensor& state, Weighted& weights) {
  weights = {s.draw.values(f32, numel(y.shape()), -1, 1),
             s.draw.values(f32, numel(state.shape()), -1, 1)};
  return sum(y * s.input(y.shape(), f32, weights.y)) +
         sum(state * s.input(state.shape(), f32, weights.state));
}

Drawn<SelectiveGiven> draw_selective(GraphBuilder& s, std::int64_t length) {
  std::vector<Tensor> t = {s.input({2, length, 5}, -1, 1),
                           s.input({2, length, 5}, 0.01, 0.4),
                           s.input({5, 3}, -2, -0.1),
                           s.input({2, length, 3}, -1, 1),
                           s.input({2, length, 3}, -1, 1),
                           s.input({2, 5, 3}, -1, 1),
                           s.input({5}, -1, 1),
                           s.input({2, length, 5}, -3, 3)};
  return drawn<SelectiveGiven>(s, std::move(t), {2, length, 5, 3, {}, {}, {}, {}, {}, {}, {}, {}},
                               kSelectiveParts);
}

Drawn<SsdGiven> draw_ssd(GraphBuilder& s, std::int64_t length) {
  std::vector<Tensor> t = {s.input({2, length, 4, 3}, -1, 1),
                           s.input({2, length, 4}, 0.01, 0.4),
                           s.input({4}, -2, -0.1),
                           s.input({2, length, 2, 5}, -1, 1),
                           s.input({2, length, 2, 5}, -1, 1),
                           s.input({2, 4, 3, 5}, -1, 1)};
  return drawn<SsdGiven>(s, std::move(t), {2, length, 4, 3, 2, 5, {}, {}, {}, {}, {}, {}},
                         kSsdParts);
}

namespace {

Drawn<RotaryGiven> draw_rotary_of(std::int64_t ranks, GraphBuilder& s, std::int64_t length) {
  const Shape steps = {2, length, 2}, of_states = {2, length, 2, ranks, 4};
  std::vector<Tensor> t = {s.input({2, length, 2, ranks, 3}, -1, 1),
                           s.input(steps, 0.01, 0.4),
                           s.input(steps, -2, -0.1),
                           s.input(steps, 0, 1),
                           s.input({2, length, 2, 2}, -3, 3),
                           s.input(of_states, -1, 1),
                           s.input(of_states, -1, 1)};
  return drawn<RotaryGiven>(s, std::move(t),
                            {2, length, 2, ranks, 3, 4, {}, {}, {}, {}, {}, {}, {}}, kRotaryParts);
}

}  // namespace

Drawn<RotaryGiven> draw_rotary(GraphBuilder& s, std::int64_t length) {
  return draw_rotary_of(2, s, length);
}
Drawn<RotaryGiven> draw_rotary_of_one_rank(GraphBuilder& s, std::int64_t length) {
  return draw_rotary_of(1, s, length);
}

void give_gradients(GraphBuilder& s, const Tensor& loss, const std::vector<Tensor>& inputs,
                    const std::string& name) {
  const std::vector<Tensor> gradients = grad(loss, inputs);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    s.output(name + std::to_string(i), gradients[i]);
}

}  // namespace tensorgrad::testing
