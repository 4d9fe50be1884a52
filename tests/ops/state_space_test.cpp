// SPDX-License-Identifier: MIT
// State space scans and their gradients against loops over the steps in double, for lengths around
// those of chunks and segments, in one call and in pieces. Also compares values computed by hand.
#include <cmath>
#include <functional>
#include <set>
#include <span>

#include "state_space_loops.h"
#include "support/sanitized.h"

namespace tensorgrad::testing {
namespace {

// Lengths for gradients. With a sanitizer, fewer, because the differences are slow.
constexpr auto kLengthsOfGradients = std::span(kScanLengths).first(kSanitized ? 5 : 7);

// Scans in one call, and in three calls that pass on the state.
void check_selective(Where where, Discretization discretization) {
  const bool software = where == Where::kWebGpu && device_at(where)->info().software;
  for (const std::int64_t length : kScanLengths) {
    // A software driver takes seconds to compile a kernel. Lengths act alike in both forms.
    if (software && discretization == Discretization::kZeroOrderHold && length % 2 == 0) continue;
    GraphBuilder s(static_cast<std::uint64_t>(length));
    const auto [t, g] = draw_selective(s, length);
    SelectiveScanOptions options = {
        .D = t[6], .z = t[7], .initial_state = t[5], .discretization = discretization};
    const SelectiveScan whole = selective_scan(t[0], t[1], t[2], t[3], t[4], options);
    s.output("y", whole.y);
    s.output("state", whole.state);
    std::vector<Tensor> pieces;
    std::int64_t begin = 0;
    for (const std::int64_t end : {length / 3, length / 2, length}) {
      if (end == begin) continue;
      const auto some = [&](Tensor x) { return narrow(x, 1, begin, end - begin); };
      options.z = some(t[7]);
      const SelectiveScan piece =
          selective_scan(some(t[0]), some(t[1]), t[2], some(t[3]), some(t[4]), options);
      pieces.push_back(piece.y);
      options.initial_state = piece.state;
      begin = end;
    }
    s.output("y_in_pieces", concat(pieces, 1));
    s.output("state_in_pieces", *options.initial_state);
    const ScanResults want = one_by_one(g, discretization);
    const ValueMap got = run_graph(s.graph(), s.leaves, where);
    const std::string what = std::to_string(length) + " steps, ";
    expect_near(got.at("y"), want.y, 2e-5, what + "y");
    expect_near(got.at("state"), want.state, 2e-5, what + "state");
    expect_near(got.at("y_in_pieces"), want.y, 2e-5, what + "y in pieces");
    expect_near(got.at("state_in_pieces"), want.state, 2e-5, what + "state in pieces");
  }
}

TEST(SelectiveScan, matches_a_loop_on_cpu) {
  check_selective(Where::kCpu, Discretization::kEuler);
  check_selective(Where::kCpu, Discretization::kZeroOrderHold);
}
TEST(SelectiveScan, matches_a_loop_on_webgpu) {
  check_selective(Where::kWebGpu, Discretization::kEuler);
  check_selective(Where::kWebGpu, Discretization::kZeroOrderHold);
}

// u = 1, 2, 3 and delta = ln 2, A = -1, B = C = 1; the values are computed by hand.
void check_numbers_by_hand(Where where) {
  GraphBuilder s;
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
TEST(SelectiveScan, matches_numbers_computed_by_hand) { check_numbers_by_hand(Where::kCpu); }
TEST(SelectiveScan, matches_numbers_computed_by_hand_on_webgpu) {
  check_numbers_by_hand(Where::kWebGpu);
}

// Vanishing decays and steps of length 0 are exact. So is softplus if the exponential overflows
// f32: softplus(100) = 100, softplus(-100) = 0.
void check_extreme_steps(Where where) {
  GraphBuilder s;
  const Tensor u = s.input({1, 4, 1}, f32, {1, 2, 3, 4});
  const Tensor delta = s.input({1, 4, 1}, f32, {1, 1e4, 0, 1});
  const Tensor raw = s.input({1, 4, 1}, f32, {100, -100, 100, -100});
  const Tensor rate = s.input({1, 1}, f32, {-300}), one = s.input({1, 4, 1}, f32, {1, 1, 1, 1});
  const Tensor soft = selective_scan(u, raw, rate, one, one, {.delta_softplus = true}).y;
  s.output("y", selective_scan(u, delta, rate, one, one).y);
  s.output("soft", soft);
  // A software driver takes seconds to compile the backward kernel.
  const bool slopes = !device_at(where)->info().software;
  if (slopes) s.output("draw", grad(sum(soft), {raw})[0]);
  const ValueMap got = run_graph(s.graph(), s.leaves, where);
  EXPECT_EQ(got.at("y"), Values({1, 2e4, 2e4, 4}));
  EXPECT_EQ(got.at("soft"), Values({100, 100, 300, 300})) << to_string(where);
  if (slopes) expect_near(got.at("draw"), {2, 0, 6, 0}, 1e-6, "draw");
}
TEST(SelectiveScan, of_extreme_steps) { check_extreme_steps(Where::kCpu); }
TEST(SelectiveScan, of_extreme_steps_on_webgpu) { check_extreme_steps(Where::kWebGpu); }

// With the zero-order hold, a step contributes at most u / -A, or delta u if A is 0.
void check_extreme_holds(Where where) {
  GraphBuilder s;
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

// With and without a gradient of the last state. Without it, if the steps are one segment, the
// kernel fuses the gate.
struct GradientForm {
  Discretization discretization;
  bool of_state;
};

void check_gradient_of_selective(Where where) {
  // A software driver takes seconds to compile each kernel, and to run a long scan. There, the
  // first three forms run for one length of each kind: whole chunks, a ragged chunk, segments. The
  // last form is left to WideScan.
  const bool software = where == Where::kWebGpu && device_at(where)->info().software;
  const std::set<std::int64_t> kinds = {64, 65, 257};
  for (const std::int64_t length : kLengthsOfGradients) {
    for (const GradientForm& form :
         {GradientForm{Discretization::kEuler, true}, GradientForm{Discretization::kEuler, false},
          GradientForm{Discretization::kZeroOrderHold, false},
          GradientForm{Discretization::kZeroOrderHold, true}}) {
      const bool hold = form.discretization == Discretization::kZeroOrderHold;
      if (software && (!kinds.contains(length) || (form.of_state && hold))) continue;
      GraphBuilder s(static_cast<std::uint64_t>(length));
      const auto [t, g] = draw_selective(s, length);
      const SelectiveScan whole = selective_scan(
          t[0], t[1], t[2], t[3], t[4],
          {.D = t[6], .z = t[7], .initial_state = t[5], .discretization = form.discretization});
      Weighted weights;
      Tensor loss = weighted(s, whole.y, whole.state, weights);
      if (!form.of_state) {
        weights.state.assign(weights.state.size(), 0);
        loss = sum(whole.y * s.input(whole.y.shape(), f32, weights.y));
      }
      give_gradients(s, loss, t, "d");
      const auto value = [&](const SelectiveGiven& at) {
        return weights.of(one_by_one(at, form.discretization));
      };
      check_slopes<SelectiveGiven>(g, kSelectiveParts, run_graph(s.graph(), s.leaves, where), "d",
                                   value, std::to_string(length) + " steps");
    }
  }
}

TEST(SelectiveScan, gradient_matches_a_loop_on_cpu) { check_gradient_of_selective(Where::kCpu); }
TEST(SelectiveScan, gradient_matches_a_loop_on_webgpu) {
  check_gradient_of_selective(Where::kWebGpu);
}

// z of any layout and size: a slice of another tensor, transposed, f16, constant over the steps, a
// scalar, a constant. Without D.
void check_any_gate(Where where) {
  GraphBuilder s;
  const Shape steps = {2, 32, 24}, bc = {2, 32, 3};
  const Tensor u = s.input(steps), delta = s.input(steps, 0.01, 0.4);
  const Tensor rate = s.input({24, 3}, -2, -0.1), in = s.input(bc), out = s.input(bc);
  const Tensor joint = s.input({2, 32, 48}, -3, 3), turned = s.input({2, 24, 32}, -3, 3);
  const Tensor of_channels = s.input({24}, -3, 3), one = s.input({}, -3, 3);
  const Tensor half = s.input(steps, f16, s.draw.values(f16, numel(steps), -3, 3));
  // A software driver takes seconds to compile each backward kernel.
  const std::set<std::string> slopes_in_software = {"joint", "far"};
  const bool software = where == Where::kWebGpu && device_at(where)->info().software;
  const auto give = [&](const std::string& name, Tensor z, const std::vector<Tensor>& wrt) {
    const Tensor y = selective_scan(u, delta, rate, in, out, {.z = z}).y;
    s.output(name, y);
    if (software && !slopes_in_software.contains(name)) return;
    const std::vector<Tensor> d = grad(sum(square(y)), wrt);
    for (std::size_t i = 0; i < d.size(); ++i) s.output(name + std::to_string(i), d[i]);
  };
  give("joint", narrow(joint, 2, 24, 24), {u, joint});
  give("turned", transpose(turned, 1, 2), {u, turned});
  give("half", half, {u, half});
  give("of channels", broadcast_to(of_channels, steps), {u, of_channels});
  give("one", broadcast_to(one, steps), {u, one});
  give("constant", full(steps, 0.5), {u});
  give("far", narrow(joint, 2, 0, 24) * 40, {u, joint});
  s.check(where, 1e-3);
}

TEST(SelectiveScan, takes_any_gate_on_cpu) { check_any_gate(Where::kCpu); }
TEST(SelectiveScan, takes_any_gate_on_webgpu) { check_any_gate(Where::kWebGpu); }

TEST(SelectiveScan, propagates_nan) {
  GraphBuilder s;
  const Tensor u = s.input({1, 3, 2}, f32, {1, 1, NAN, 1, 1, 1});
  const Tensor delta = s.input({1, 3, 2}, f32, {1, 1, 1, 1, 1, 1});
  const Tensor rate = s.input({2, 1}, f32, {-1, NAN}), one = s.input({1, 3, 1}, f32, {1, 1, 1});
  s.output("y", selective_scan(u, delta, rate, one, one).y);
  const Values y = run_graph(s.graph(), s.leaves, Where::kCpu).at("y");
  EXPECT_EQ(y[0], 1);
  for (const std::size_t i : {1U, 2U, 3U, 4U, 5U}) EXPECT_TRUE(std::isnan(y[i])) << i;
}

// ---- structured state space duality -------------------------------------------------------------

// Runs pieces that end at `ends`, each of which continues from the previous one. Returns all y and
// the last state.
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
  for (const std::int64_t length : kScanLengths) {
    GraphBuilder s(static_cast<std::uint64_t>(length));
    const auto [t, g] = draw_ssd(s, length);
    for (const std::int64_t chunk : {64, 10}) {
      const Ssd whole = ssd(t[0], t[1], t[2], t[3], t[4], {.chunk = chunk, .initial_state = t[5]});
      s.output("y" + std::to_string(chunk), whole.y);
      s.output("state" + std::to_string(chunk), whole.state);
    }
    const Ssd pieces = ssd_in_pieces(t, {length / 3, length / 2, length});
    s.output("y_in_pieces", pieces.y);
    s.output("state_in_pieces", pieces.state);
    const ScanResults want = one_by_one(g);
    const ValueMap got = run_graph(s.graph(), s.leaves, where);
    for (const std::string how_many : {"64", "10", "_in_pieces"}) {
      const std::string what = std::to_string(length) + " steps, " + how_many;
      expect_near(got.at("y" + how_many), want.y, 3e-5, what + ", y");
      expect_near(got.at("state" + how_many), want.state, 3e-5, what + ", state");
    }
  }
}

// A step with a decay of e^-320 or less, followed by steps of e^-0.16, against the interpreter in
// double, which loses no digits. The input of the large step itself is 0.
void check_large_step(Where where) {
  constexpr std::int64_t kSteps = 64;
  for (const double large : {20.0, 200.0, 2000.0}) {
    for (const std::int64_t chunk : {16, 64}) {
      GraphBuilder s;
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

TEST(Ssd, is_accurate_after_a_large_step_on_cpu) { check_large_step(Where::kCpu); }
TEST(Ssd, is_accurate_after_a_large_step_on_webgpu) { check_large_step(Where::kWebGpu); }

void check_gradient_of_ssd(Where where) {
  for (const std::int64_t length : kLengthsOfGradients) {
    GraphBuilder s(static_cast<std::uint64_t>(length));
    const auto [t, g] = draw_ssd(s, length);
    const Ssd whole = ssd(t[0], t[1], t[2], t[3], t[4], {.initial_state = t[5]});
    Weighted weights;
    give_gradients(s, weighted(s, whole.y, whole.state, weights), t, "d");
    const auto value = [&](const SsdGiven& at) { return weights.of(one_by_one(at)); };
    check_slopes<SsdGiven>(g, kSsdParts, run_graph(s.graph(), s.leaves, where), "d", value,
                           std::to_string(length) + " steps");
  }
}

TEST(Ssd, gradient_matches_a_loop_on_cpu) { check_gradient_of_ssd(Where::kCpu); }
TEST(Ssd, gradient_matches_a_loop_on_webgpu) { check_gradient_of_ssd(Where::kWebGpu); }
TEST(Ssd, matches_a_loop_on_cpu) { check_ssd(Where::kCpu); }
TEST(Ssd, matches_a_loop_on_webgpu) { check_ssd(Where::kWebGpu); }

// ---- trapezoids and rotations -------------------------------------------------------------------

// Scans steps [begin, end) of the inputs.
RotaryScan scanned(const std::vector<Tensor>& t, std::int64_t begin, std::int64_t end,
                   const RotaryScanOptions& how) {
  const auto some = [&](std::size_t i) { return narrow(t[i], 1, begin, end - begin); };
  return rotary_scan(some(0), some(1), some(2), some(3), some(4), some(5), some(6), how);
}

// Runs pieces that end at `ends`, each of which continues from the previous one. Returns all y and
// the last state.
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
  for (const std::int64_t length : kScanLengths) {
    GraphBuilder s(static_cast<std::uint64_t>(length));
    const auto [t, g] = draw_rotary(s, length);
    for (const std::int64_t chunk : {64, 10}) {
      const RotaryScan whole = scanned(t, 0, length, {.chunk = chunk});
      s.output("y" + std::to_string(chunk), whole.y);
      s.output("state" + std::to_string(chunk), whole.state.state);
    }
    const RotaryScan pieces = scanned_in_pieces(t, {length / 3, length / 2, length});
    s.output("y_in_pieces", pieces.y);
    s.output("state_in_pieces", pieces.state.state);
    const ScanResults want = one_by_one(g);
    const ValueMap got = run_graph(s.graph(), s.leaves, where);
    // The tolerance is small although the sum of all angles is in the hundreds.
    const double tolerance = 3e-5;
    for (const std::string how_many : {"64", "10", "_in_pieces"}) {
      const std::string what = std::to_string(length) + " steps, " + how_many;
      expect_near(got.at("y" + how_many), want.y, tolerance, what + ", y");
      expect_near(got.at("state" + how_many), want.state, tolerance, what + ", state");
    }
  }
}

// Checks the gradient of one call and of pieces that pass on the state.
void check_gradient_of_rotary(Where where) {
  for (const std::int64_t length : kLengthsOfGradients) {
    GraphBuilder s(static_cast<std::uint64_t>(length));
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

TEST(RotaryScan, gradient_matches_a_loop_on_cpu) { check_gradient_of_rotary(Where::kCpu); }
TEST(RotaryScan, gradient_matches_a_loop_on_webgpu) { check_gradient_of_rotary(Where::kWebGpu); }
TEST(RotaryScan, matches_a_loop_on_cpu) { check_rotary(Where::kCpu); }
TEST(RotaryScan, matches_a_loop_on_webgpu) { check_rotary(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
