// SPDX-License-Identifier: MIT
// Scans of state spaces against loops over the steps in double, for lengths around those of chunks
// and segments, whole and in pieces; numbers worked out by hand; what comes later changes nothing.
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "support/sanitized.h"
#include "support/sketch.h"

namespace tensorgrad::testing {
namespace {

constexpr std::array<std::int64_t, 7> kLengths = {1, 2, 63, 64, 65, 257, 1000};
// Of gradients: the loops of differences take long with a sanitizer, and kernels long to compile.
constexpr std::span kLengthsOfGradients = std::span(kLengths).first(kSanitized ? 5 : 7);
constexpr std::array<std::int64_t, 3> kLengthsOnGpu = {65, 257, 1000};

struct Given {
  std::int64_t batch, length, channels, states;
  Values u, delta, rates, in, out, initial;  // as selective_scan() takes them
};

struct Results {
  Values y, state;
};

// h = e^(delta A) h + w B u, y = C h, one step after another.
Results one_by_one(const Given& g, Discretization discretization) {
  Results r{Values(g.u.size(), 0), g.initial};
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
  return r;
}

void expect_near(const Values& got, const Values& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << what << ", element " << i;
  }
}

// How fast `value` changes as a quarter of a part's elements moves, some up and some down, against
// what the gradients `gradient0`, `gradient1`... of it say.
template <class G>
void check_slopes(const G& given, std::span<Values G::* const> parts, const ValueMap& got,
                  const std::string& gradient, const std::function<double(const G&)>& value,
                  const std::string& what) {
  constexpr double kStep = 1e-5;
  Draw draw(7);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const Values& slopes = got.at(gradient + std::to_string(part));
    const std::size_t size = slopes.size();
    ASSERT_EQ(size, (given.*parts[part]).size()) << what << ", input " << part;
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      G below = given, above = given;
      double slope = 0, all = 0;
      for (std::size_t i = size * quarter / 4; i < size * (quarter + 1) / 4; ++i) {
        const double direction = draw.values(f32, 1, -1, 1)[0];
        (below.*parts[part])[i] -= kStep * direction;
        (above.*parts[part])[i] += kStep * direction;
        slope += slopes[i] * direction;
        all += std::abs(slopes[i] * direction);
      }
      const double difference = (value(above) - value(below)) / (2 * kStep);
      EXPECT_NEAR(slope, difference, 2e-5 * all + 1e-6)
          << what << ", input " << part << ", quarter " << quarter;
    }
  }
}

// y and the last state, weighted and added up: for reference and graph.
struct Weighted {
  Values y, state;
  [[nodiscard]] double of(const Results& r) const {
    return std::inner_product(y.begin(), y.end(), r.y.begin(), 0.0) +
           std::inner_product(state.begin(), state.end(), r.state.begin(), 0.0);
  }
};

Tensor weighted(Sketch& s, const Tensor& y, const Tensor& state, Weighted& weights) {
  weights = {s.draw.values(f32, numel(y.shape()), -1, 1),
             s.draw.values(f32, numel(state.shape()), -1, 1)};
  return sum(y * s.input(y.shape(), f32, weights.y)) +
         sum(state * s.input(state.shape(), f32, weights.state));
}

// What a scan is given, as tensors and as numbers.
template <class G>
struct Drawn {
  std::vector<Tensor> t;
  G given;
};

template <class G, std::size_t N>
Drawn<G> drawn(const Sketch& s, std::vector<Tensor> t, G given, Values G::* const (&parts)[N]) {
  for (std::size_t i = 0; i < N; ++i) given.*parts[i] = s.leaves.at("in" + std::to_string(i));
  return {std::move(t), std::move(given)};
}

constexpr Values Given::* kSelectiveParts[] = {&Given::u,  &Given::delta, &Given::rates,
                                               &Given::in, &Given::out,   &Given::initial};

Drawn<Given> draw_selective(Sketch& s, std::int64_t length) {
  std::vector<Tensor> t = {s.input({2, length, 5}, -1, 1), s.input({2, length, 5}, 0.01, 0.4),
                           s.input({5, 3}, -2, -0.1),      s.input({2, length, 3}, -1, 1),
                           s.input({2, length, 3}, -1, 1), s.input({2, 5, 3}, -1, 1)};
  return drawn<Given>(s, std::move(t), {2, length, 5, 3, {}, {}, {}, {}, {}, {}}, kSelectiveParts);
}

void give_gradients(Sketch& s, const Tensor& loss, const std::vector<Tensor>& inputs,
                    const std::string& name) {
  const std::vector<Tensor> gradients = grad(loss, inputs);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    s.output(name + std::to_string(i), gradients[i]);
}

// In one call, and in three whose states go from one to the next.
void check_selective(Where where, Discretization discretization) {
  for (const std::int64_t length : kLengths) {
    Sketch s(static_cast<std::uint64_t>(length));
    const auto [t, g] = draw_selective(s, length);
    SelectiveScanOptions options = {.initial_state = t[5], .discretization = discretization};
    const SelectiveScan whole = selective_scan(t[0], t[1], t[2], t[3], t[4], options);
    s.output("y", whole.y);
    s.output("state", whole.state);
    std::vector<Tensor> pieces;
    std::int64_t begin = 0;
    for (const std::int64_t end : {length / 3, length / 2, length}) {
      if (end == begin) continue;
      const auto some = [&](Tensor x) { return narrow(x, 1, begin, end - begin); };
      const SelectiveScan piece =
          selective_scan(some(t[0]), some(t[1]), t[2], some(t[3]), some(t[4]), options);
      pieces.push_back(piece.y);
      options.initial_state = piece.state;
      begin = end;
    }
    s.output("y_in_pieces", concat(pieces, 1));
    s.output("state_in_pieces", *options.initial_state);
    const Results want = one_by_one(g, discretization);
    const ValueMap got = run_graph(s.graph(), s.leaves, where);
    const std::string what = std::to_string(length) + " steps, ";
    expect_near(got.at("y"), want.y, 2e-5, what + "y");
    expect_near(got.at("state"), want.state, 2e-5, what + "state");
    expect_near(got.at("y_in_pieces"), want.y, 2e-5, what + "y in pieces");
    expect_near(got.at("state_in_pieces"), want.state, 2e-5, what + "state in pieces");
  }
}

TEST(SelectiveScan, is_that_of_a_loop_on_cpu) {
  check_selective(Where::kCpu, Discretization::kEuler);
  check_selective(Where::kCpu, Discretization::kZeroOrderHold);
}
TEST(SelectiveScan, is_that_of_a_loop_on_webgpu) {
  check_selective(Where::kWebGpu, Discretization::kEuler);
  check_selective(Where::kWebGpu, Discretization::kZeroOrderHold);
}

// u = 1, 2, 3 and delta = ln 2, A = -1, B = C = 1: by hand.
TEST(SelectiveScan, gives_the_numbers_worked_out_by_hand) {
  for (const Where where : {Where::kCpu, Where::kWebGpu}) {
    Sketch s;
    const Tensor u = s.input({1, 3, 1}, f32, {1, 2, 3}), raw = s.input({1, 3, 1}, f32, {0, 0, 0});
    const Tensor rate = s.input({1, 1}, f32, {-1}), one = s.input({1, 3, 1}, f32, {1, 1, 1});
    s.output("euler", selective_scan(u, raw, rate, one, one, {.delta_softplus = true}).y);
    s.output("hold", selective_scan(
                         u, raw, rate, one, one,
                         {.delta_softplus = true, .discretization = Discretization::kZeroOrderHold})
                         .y);
    const ValueMap got = run_graph(s.graph(), s.leaves, where);
    expect_near(got.at("euler"), {0.6931472, 1.7328680, 2.9458755}, 1e-6, "euler");
    expect_near(got.at("hold"), {0.5, 1.25, 2.125}, 1e-6, "hold");
  }
}

// Decays that vanish, and steps of no length, are exact.
TEST(SelectiveScan, of_extreme_steps) {
  for (const Where where : {Where::kCpu, Where::kWebGpu}) {
    Sketch s;
    const Tensor u = s.input({1, 4, 1}, f32, {1, 2, 3, 4});
    const Tensor delta = s.input({1, 4, 1}, f32, {1, 1e4, 0, 1});
    const Tensor rate = s.input({1, 1}, f32, {-300}), one = s.input({1, 4, 1}, f32, {1, 1, 1, 1});
    s.output("y", selective_scan(u, delta, rate, one, one).y);
    const Values y = run_graph(s.graph(), s.leaves, where).at("y");
    EXPECT_EQ(y, Values({1, 2e4, 2e4, 4}));
  }
}

// By the zero-order hold a step brings u / -A at most; where nothing decays it brings delta u.
void check_extreme_holds(Where where) {
  Sketch s;
  const Tensor u = s.input({1, 4, 3}, f32, {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4});
  const Tensor delta = broadcast_to(s.input({1, 4, 1}, f32, {1, 1e4, 0, 1}), {1, 4, 3});
  const Tensor rate = s.input({3, 1}, f32, {-256, 0, -1e-30});
  const Tensor one = s.input({1, 4, 1}, f32, {1, 1, 1, 1});
  const SelectiveScanOptions hold = {.discretization = Discretization::kZeroOrderHold};
  s.output("y", selective_scan(u, delta, rate, one, one, hold).y);
  const Values y = run_graph(s.graph(), s.leaves, where).at("y");
  const double decays[] = {1, 2, 2, 4}, stays[] = {1, 20001, 20001, 20005};
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double want = i % 3 == 0 ? decays[i / 3] / 256 : stays[i / 3];
    EXPECT_NEAR(y[i], want, 1e-6 * want) << i;
  }
}

TEST(SelectiveScan, of_extreme_steps_by_the_zero_order_hold_on_cpu) {
  check_extreme_holds(Where::kCpu);
}
TEST(SelectiveScan, of_extreme_steps_by_the_zero_order_hold_on_webgpu) {
  check_extreme_holds(Where::kWebGpu);
}

void check_gradient_of_selective(Where where, std::span<const std::int64_t> lengths) {
  for (const std::int64_t length : lengths) {
    for (const auto discretization : {Discretization::kEuler, Discretization::kZeroOrderHold}) {
      Sketch s(static_cast<std::uint64_t>(length));
      const auto [t, g] = draw_selective(s, length);
      const SelectiveScan whole = selective_scan(
          t[0], t[1], t[2], t[3], t[4], {.initial_state = t[5], .discretization = discretization});
      Weighted weights;
      give_gradients(s, weighted(s, whole.y, whole.state, weights), t, "d");
      const auto value = [&](const Given& at) {
        return weights.of(one_by_one(at, discretization));
      };
      check_slopes<Given>(g, kSelectiveParts, run_graph(s.graph(), s.leaves, where), "d", value,
                          std::to_string(length) + " steps");
    }
  }
}

TEST(SelectiveScan, has_the_gradient_of_a_loop_on_cpu) {
  check_gradient_of_selective(Where::kCpu, kLengthsOfGradients);
}
TEST(SelectiveScan, has_the_gradient_of_a_loop_on_webgpu) {
  check_gradient_of_selective(Where::kWebGpu, kLengthsOnGpu);
}

TEST(SelectiveScan, keeps_what_is_not_a_number) {
  Sketch s;
  const Tensor u = s.input({1, 3, 2}, f32, {1, 1, NAN, 1, 1, 1});
  const Tensor delta = s.input({1, 3, 2}, f32, {1, 1, 1, 1, 1, 1});
  const Tensor rate = s.input({2, 1}, f32, {-1, NAN}), one = s.input({1, 3, 1}, f32, {1, 1, 1});
  s.output("y", selective_scan(u, delta, rate, one, one).y);
  const Values y = run_graph(s.graph(), s.leaves, Where::kCpu).at("y");
  EXPECT_EQ(y[0], 1);
  for (const std::size_t i : {1U, 2U, 3U, 4U, 5U}) EXPECT_TRUE(std::isnan(y[i])) << i;
}

// ---- structured state space duality -------------------------------------------------------------

struct SsdGiven {
  std::int64_t batch, length, heads, width, groups, states;
  Values x, dt, rates, in, out, initial;
};

Results one_by_one(const SsdGiven& g) {
  Results r{Values(g.x.size(), 0), g.initial};
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

constexpr Values SsdGiven::* kSsdParts[] = {&SsdGiven::x,  &SsdGiven::dt,  &SsdGiven::rates,
                                            &SsdGiven::in, &SsdGiven::out, &SsdGiven::initial};

Drawn<SsdGiven> draw_ssd(Sketch& s, std::int64_t length) {
  std::vector<Tensor> t = {s.input({2, length, 4, 3}, -1, 1),
                           s.input({2, length, 4}, 0.01, 0.4),
                           s.input({4}, -2, -0.1),
                           s.input({2, length, 2, 5}, -1, 1),
                           s.input({2, length, 2, 5}, -1, 1),
                           s.input({2, 4, 3, 5}, -1, 1)};
  return drawn<SsdGiven>(s, std::move(t), {2, length, 4, 3, 2, 5, {}, {}, {}, {}, {}, {}},
                         kSsdParts);
}

// Pieces that end there, each of which goes on from the one before: y of all, and the last state.
Ssd ssd_in_pieces(const std::vector<Tensor>& t, const std::vector<std::int64_t>& ends) {
  SsdOptions how = {.initial_state = t[5]};
  std::vector<Tensor> pieces;
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    if (end == begin) continue;
    const auto some = [&](std::size_t i) { return narrow(t[i], 1, begin, end - begin); };
    const Ssd piece = ssd(some(0), some(1), t[2], some(3), some(4), how);
    pieces.push_back(piece.y);
    how.initial_state = piece.state;
    begin = end;
  }
  return {concat(pieces, 1), *how.initial_state};
}

void check_ssd(Where where) {
  for (const std::int64_t length : kLengths) {
    Sketch s(static_cast<std::uint64_t>(length));
    const auto [t, g] = draw_ssd(s, length);
    for (const std::int64_t chunk : {64, 10}) {
      const Ssd whole = ssd(t[0], t[1], t[2], t[3], t[4], {.chunk = chunk, .initial_state = t[5]});
      s.output("y" + std::to_string(chunk), whole.y);
      s.output("state" + std::to_string(chunk), whole.state);
    }
    const Ssd pieces = ssd_in_pieces(t, {length / 3, length / 2, length});
    s.output("y_in_pieces", pieces.y);
    s.output("state_in_pieces", pieces.state);
    const Results want = one_by_one(g);
    const ValueMap got = run_graph(s.graph(), s.leaves, where);
    for (const std::string how_many : {"64", "10", "_in_pieces"}) {
      const std::string what = std::to_string(length) + " steps, " + how_many;
      expect_near(got.at("y" + how_many), want.y, 3e-5, what + ", y");
      expect_near(got.at("state" + how_many), want.state, 3e-5, what + ", state");
    }
  }
}

// One step whose decay is e^-320 and more, and behind it what steps of e^-0.16 make: by the
// interpreter in double, which loses no digits. The large step itself brings nothing.
void check_large_step(Where where) {
  constexpr std::int64_t kSteps = 64;
  for (const double large : {20.0, 200.0, 2000.0}) {
    for (const std::int64_t chunk : {16, 64}) {
      Sketch s;
      Values dt(kSteps, 0.01);
      dt[5] = large;
      Values inputs = s.draw.values(f32, kSteps, 100, 200);
      inputs[5] = 0;
      const Tensor steps = s.input({1, kSteps, 1}, f32, dt);
      const Tensor x = s.input({1, kSteps, 1, 1}, f32, inputs);
      const Tensor rate = s.input({1}, f32, {-16.0}),
                   one = s.input({1, kSteps, 1, 1}, f32, Values(kSteps, 1.0));
      const Tensor y = ssd(x, steps, rate, one, one, {.chunk = chunk}).y;
      s.output("y", y);
      s.output("slope", grad(sum(y), {steps})[0] * (1.0 / 200));
      s.check(where, 1e-5);
    }
  }
}

TEST(Ssd, keeps_its_digits_behind_a_large_step_on_cpu) { check_large_step(Where::kCpu); }
TEST(Ssd, keeps_its_digits_behind_a_large_step_on_webgpu) { check_large_step(Where::kWebGpu); }

void check_gradient_of_ssd(Where where, std::span<const std::int64_t> lengths) {
  for (const std::int64_t length : lengths) {
    Sketch s(static_cast<std::uint64_t>(length));
    const auto [t, g] = draw_ssd(s, length);
    const Ssd whole = ssd(t[0], t[1], t[2], t[3], t[4], {.initial_state = t[5]});
    Weighted weights;
    give_gradients(s, weighted(s, whole.y, whole.state, weights), t, "d");
    const auto value = [&](const SsdGiven& at) { return weights.of(one_by_one(at)); };
    check_slopes<SsdGiven>(g, kSsdParts, run_graph(s.graph(), s.leaves, where), "d", value,
                           std::to_string(length) + " steps");
  }
}

TEST(Ssd, has_the_gradient_of_a_loop_on_cpu) {
  check_gradient_of_ssd(Where::kCpu, kLengthsOfGradients);
}
TEST(Ssd, has_the_gradient_of_a_loop_on_webgpu) {
  check_gradient_of_ssd(Where::kWebGpu, kLengthsOnGpu);
}
TEST(Ssd, is_that_of_a_loop_on_cpu) { check_ssd(Where::kCpu); }
TEST(Ssd, is_that_of_a_loop_on_webgpu) { check_ssd(Where::kWebGpu); }

// ---- trapezoids and rotations -------------------------------------------------------------------

struct RotaryGiven {
  std::int64_t batch, length, heads, ranks, width, states;
  Values x, dt, rates, lambda, theta, in, out;
};

// The recurrence as the paper has it, from nothing.
Results one_by_one(const RotaryGiven& g) {
  const std::int64_t pairs = g.states / 2;
  Results r{Values(g.x.size(), 0),
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

constexpr Values RotaryGiven::* kRotaryParts[] = {
    &RotaryGiven::x,     &RotaryGiven::dt, &RotaryGiven::rates, &RotaryGiven::lambda,
    &RotaryGiven::theta, &RotaryGiven::in, &RotaryGiven::out};

Drawn<RotaryGiven> draw_rotary(Sketch& s, std::int64_t length) {
  const Shape steps = {2, length, 2};
  std::vector<Tensor> t = {s.input({2, length, 2, 2, 3}, -1, 1),
                           s.input(steps, 0.01, 0.4),
                           s.input(steps, -2, -0.1),
                           s.input(steps, 0, 1),
                           s.input({2, length, 2, 2}, -3, 3),
                           s.input({2, length, 2, 2, 4}, -1, 1),
                           s.input({2, length, 2, 2, 4}, -1, 1)};
  return drawn<RotaryGiven>(s, std::move(t), {2, length, 2, 2, 3, 4, {}, {}, {}, {}, {}, {}, {}},
                            kRotaryParts);
}

// Steps [begin, end) of what is given.
RotaryScan scanned(const std::vector<Tensor>& t, std::int64_t begin, std::int64_t end,
                   const RotaryScanOptions& how) {
  const auto some = [&](std::size_t i) { return narrow(t[i], 1, begin, end - begin); };
  return rotary_scan(some(0), some(1), some(2), some(3), some(4), some(5), some(6), how);
}

// Pieces that end there, each of which goes on from the one before: y of all, and the last state.
RotaryScan scanned_in_pieces(const std::vector<Tensor>& t, const std::vector<std::int64_t>& ends) {
  RotaryScanOptions how;
  std::vector<Tensor> pieces;
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    if (end == begin) continue;
    const RotaryScan piece = scanned(t, begin, end, how);
    pieces.push_back(piece.y);
    how.initial_state = piece.state;
    begin = end;
  }
  return {concat(pieces, 1), *how.initial_state};
}

void check_rotary(Where where) {
  for (const std::int64_t length : kLengths) {
    Sketch s(static_cast<std::uint64_t>(length));
    const auto [t, g] = draw_rotary(s, length);
    for (const std::int64_t chunk : {64, 10}) {
      const RotaryScan whole = scanned(t, 0, length, {.chunk = chunk});
      s.output("y" + std::to_string(chunk), whole.y);
      s.output("state" + std::to_string(chunk), whole.state.state);
    }
    const RotaryScan pieces = scanned_in_pieces(t, {length / 3, length / 2, length});
    s.output("y_in_pieces", pieces.y);
    s.output("state_in_pieces", pieces.state.state);
    const Results want = one_by_one(g);
    const ValueMap got = run_graph(s.graph(), s.leaves, where);
    // Though the sum of all angles is some hundreds.
    const double tolerance = 3e-5;
    for (const std::string how_many : {"64", "10", "_in_pieces"}) {
      const std::string what = std::to_string(length) + " steps, " + how_many;
      expect_near(got.at("y" + how_many), want.y, tolerance, what + ", y");
      expect_near(got.at("state" + how_many), want.state, tolerance, what + ", state");
    }
  }
}

// The whole, and pieces with the states between them.
void check_gradient_of_rotary(Where where, std::span<const std::int64_t> lengths) {
  for (const std::int64_t length : lengths) {
    Sketch s(static_cast<std::uint64_t>(length));
    const auto [t, g] = draw_rotary(s, length);
    const RotaryScan whole = rotary_scan(t[0], t[1], t[2], t[3], t[4], t[5], t[6]);
    Weighted of_whole, of_pieces;
    give_gradients(s, weighted(s, whole.y, whole.state.state, of_whole), t, "whole");
    const RotaryScan pieces = scanned_in_pieces(t, {length / 2, length});
    give_gradients(s, weighted(s, pieces.y, pieces.state.state, of_pieces), t, "pieces");
    const ValueMap got = run_graph(s.graph(), s.leaves, where);
    for (const auto& [name, weights] :
         {std::pair("whole", &of_whole), std::pair("pieces", &of_pieces)}) {
      const Weighted& own = *weights;
      const auto value = [&](const RotaryGiven& at) { return own.of(one_by_one(at)); };
      check_slopes<RotaryGiven>(g, kRotaryParts, got, name, value,
                                std::to_string(length) + " steps, " + name);
    }
  }
}

TEST(RotaryScan, has_the_gradient_of_a_loop_on_cpu) {
  check_gradient_of_rotary(Where::kCpu, kLengthsOfGradients);
}
TEST(RotaryScan, has_the_gradient_of_a_loop_on_webgpu) {
  check_gradient_of_rotary(Where::kWebGpu, kLengthsOnGpu);
}
TEST(RotaryScan, is_that_of_a_loop_on_cpu) { check_rotary(Where::kCpu); }
TEST(RotaryScan, is_that_of_a_loop_on_webgpu) { check_rotary(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
