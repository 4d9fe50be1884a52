// SPDX-License-Identifier: MIT
// Causal convolutions against a plain loop in double, for lengths around those of chunks. Compares
// outputs, states and the gradients of all inputs, in one call and in pieces that pass on the
// state.
#include "stepper.h"
#include "support/sanitized.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kConvBatch = 3, kConvChannels = 5, kTaps = 4, kBefore = kTaps - 1;

struct ConvGiven {
  std::int64_t length;
  Values x, weight, bias, before;
};
constexpr Values ConvGiven::* kConvParts[] = {&ConvGiven::x, &ConvGiven::weight, &ConvGiven::bias,
                                              &ConvGiven::before};

// Computes y[t] = bias + sum over k of weight[k] x[t - 3 + k], with the state before x.
ScanResults one_by_one(const ConvGiven& g) {
  ScanResults r;
  for (std::int64_t b = 0; b < kConvBatch; ++b) {
    const auto input = [&](std::int64_t t, std::int64_t d) {
      return t < 0 ? g.before[static_cast<std::size_t>((b * kBefore + kBefore + t) * kConvChannels +
                                                       d)]
                   : g.x[static_cast<std::size_t>((b * g.length + t) * kConvChannels + d)];
    };
    for (std::int64_t t = 0; t < g.length; ++t) {
      for (std::int64_t d = 0; d < kConvChannels; ++d) {
        double y = g.bias[static_cast<std::size_t>(d)];
        for (std::int64_t k = 0; k < kTaps; ++k)
          y += g.weight[static_cast<std::size_t>(d * kTaps + k)] * input(t - kBefore + k, d);
        r.y.push_back(y);
      }
    }
    for (std::int64_t t = g.length - kBefore; t < g.length; ++t)
      for (std::int64_t d = 0; d < kConvChannels; ++d) r.state.push_back(input(t, d));
  }
  return r;
}

CausalConv convolved_in_pieces(const std::vector<Tensor>& t, std::int64_t length) {
  std::vector<Tensor> pieces;
  Tensor state = t[3];
  std::int64_t begin = 0;
  for (const std::int64_t end : {length / 3, length / 2, length}) {
    if (end == begin) continue;
    const CausalConv piece = causal_conv1d(narrow(t[0], 1, begin, end - begin), t[1], t[2], state);
    pieces.push_back(piece.y);
    state = piece.state;
    begin = end;
  }
  return {concat(pieces, 1), state};
}

Drawn<ConvGiven> draw_conv(GraphBuilder& s, std::int64_t length) {
  return drawn<ConvGiven>(
      s,
      {s.input({kConvBatch, length, kConvChannels}), s.input({kConvChannels, kTaps}),
       s.input({kConvChannels}), s.input({kConvBatch, kBefore, kConvChannels})},
      {length, {}, {}, {}, {}}, kConvParts);
}

void check_conv(Where where, std::int64_t length) {
  GraphBuilder s(static_cast<std::uint64_t>(length));
  const auto [t, g] = draw_conv(s, length);
  const CausalConv whole = causal_conv1d(t[0], t[1], t[2], t[3]);
  const CausalConv pieces = convolved_in_pieces(t, length);
  Weighted of_whole, of_pieces;
  for (const auto& [name, made, weights] :
       {std::tuple("whole", &whole, &of_whole), std::tuple("pieces", &pieces, &of_pieces)}) {
    s.output(std::string("y_") + name, made->y);
    s.output(std::string("state_") + name, made->state);
    give_gradients(s, weighted(s, made->y, made->state, *weights), t, name);
  }
  const ScanResults want = one_by_one(g);
  const ValueMap got = run_graph(s.graph(), s.leaves, where);
  for (const auto& [name, weights] :
       {std::pair("whole", &of_whole), std::pair("pieces", &of_pieces)}) {
    const std::string what = std::to_string(length) + " steps, " + name;
    expect_near(got.at(std::string("y_") + name), want.y, 2e-6, what + ", y");
    expect_near(got.at(std::string("state_") + name), want.state, 0, what + ", state");
    const auto value = [&given = *weights](const ConvGiven& at) {
      return given.of(one_by_one(at));
    };
    check_slopes<ConvGiven>(g, kConvParts, got, name, value, what);
  }
}

TEST(CausalConv, matches_a_loop_with_gradients_on_cpu) {
  for (const std::int64_t length : kScanLengths) check_conv(Where::kCpu, length);
}
TEST(CausalConv, matches_a_loop_with_gradients_on_webgpu) {
  for (const std::int64_t length : kScanLengths) check_conv(Where::kWebGpu, length);
}

void check_conv_steps(Where where) {
  Stepper stepper(where,
                  {{"x", StepInput::kOfStep, {kConvBatch, 1, kConvChannels}},
                   {"weight", StepInput::kFixed, {kConvChannels, kTaps}},
                   {"bias", StepInput::kFixed, {kConvChannels}},
                   {"state", StepInput::kState, {kConvBatch, kBefore, kConvChannels}}},
                  [](const Inputs& in) {
                    const CausalConv conv =
                        causal_conv1d(in["x"], in["weight"], in["bias"], in["state"]);
                    return std::map<std::string, Tensor>{{"y", conv.y}, {"state", conv.state}};
                  });
  check_steps<ConvGiven>(stepper, draw_conv, kConvParts,
                         [](const ConvGiven& g) { return one_by_one(g); });
}

TEST(CausalConv, steps_match_a_loop_on_cpu) { check_conv_steps(Where::kCpu); }
TEST(CausalConv, steps_match_a_loop_on_webgpu) { check_conv_steps(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
