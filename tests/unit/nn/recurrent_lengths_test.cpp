// SPDX-License-Identifier: MIT
// Recurrent layers: if lengths are given, results of a padded batch equal those of each sequence by
// itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::Each;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Floats = std::vector<float>;

constexpr std::int64_t kSteps = 5, kBatch = 3, kIn = 2, kHidden = 4;
const std::vector<std::int32_t> kLengths = {5, 1, 3};

// Returns the first `length` steps of sequence b of x [T, B, in].
Floats sequence(const Floats& x, std::int64_t b, std::int64_t length) {
  Floats rows;
  for (std::int64_t t = 0; t < length; ++t) {
    for (std::int64_t i = 0; i < kIn; ++i)
      rows.push_back(x[static_cast<std::size_t>((t * kBatch + b) * kIn + i)]);
  }
  return rows;
}

template <class Layer>
void expect_each_by_itself(const Layer& layer) {
  const auto run = [](const Layer& net, const Tensor& x, const std::optional<Tensor>& lengths) {
    std::map<std::string, Tensor> results;
    if constexpr (std::is_same_v<Layer, nn::LSTM>) {
      const auto made = net(x, std::nullopt, std::nullopt, lengths);
      results = {{"output", made.output}, {"h", made.h}, {"c", made.c}};
    } else {
      const auto made = net(x, std::nullopt, lengths);
      results = {{"output", made.output}, {"h", made.h}};
    }
    return results;
  };
  Floats x;
  for (int i = 0; i < kSteps * kBatch * kIn; ++i)
    x.push_back(std::sin(static_cast<float>(i * i + 1)));
  const DeviceOptions device = {.kind = "cpu"};
  auto together = compile_function(
      layer, [&](const Layer& net, const Inputs& in) { return run(net, in["x"], in["lengths"]); },
      {.inputs = {{"x", {kSteps, kBatch, kIn}}, {"lengths", {kBatch}, i32}}, .device = device});
  const NamedTensors all = together.run({{"x", x}, {"lengths", kLengths}});
  for (std::int64_t b = 0; b < kBatch; ++b) {
    const std::int64_t length = kLengths[static_cast<std::size_t>(b)];
    auto alone = compile_function(
        layer, [&](const Layer& net, const Inputs& in) { return run(net, in["x"], std::nullopt); },
        {.inputs = {{"x", {length, 1, kIn}}}, .device = device});
    const NamedTensors one = alone.run({{"x", sequence(x, b, length)}});
    for (const auto& [name, tensor] : one) {
      Floats part = all.at(name).unbind(1)[static_cast<std::size_t>(b)].floats();
      const Floats expected = tensor.floats();
      const Floats padding(part.begin() + static_cast<std::ptrdiff_t>(expected.size()), part.end());
      part.resize(expected.size());
      EXPECT_THAT(part, Pointwise(FloatNear(1e-6F), expected)) << name << " of " << b;
      EXPECT_THAT(padding, Each(0.0F)) << name << " of " << b;
    }
  }
}

TEST(RecurrentLengths, of_an_lstm) { expect_each_by_itself(nn::LSTM(kIn, kHidden)); }
TEST(RecurrentLengths, of_an_lstm_both_ways) {
  expect_each_by_itself(nn::LSTM(kIn, kHidden, {.num_layers = 2, .bidirectional = true}));
}
TEST(RecurrentLengths, of_a_gru_both_ways) {
  expect_each_by_itself(nn::GRU(kIn, kHidden, {.num_layers = 2, .bidirectional = true}));
}

TEST(RecurrentLengths, gradient_of_padding_is_zero) {
  auto loss = [](const nn::LSTM& net, const Inputs& in) {
    return sum(net(in["x"], std::nullopt, std::nullopt, in["lengths"]).output);
  };
  const auto gradient = [&](float padding) {
    auto trainer = compile(nn::LSTM(kIn, kHidden, {.batch_first = true}), loss,
                           {.inputs = {{"x", {1, 3, kIn}}, {"lengths", {1}, i32}},
                            .optimizer = optim::SGD{},
                            .device = {.kind = "cpu"}});
    trainer.step(
        {{"x", Floats{1, 2, 3, 4, padding, padding}}, {"lengths", std::vector<std::int32_t>{2}}});
    return trainer.download_grads().at("weight_ih_l0").floats();
  };
  EXPECT_EQ(gradient(0), gradient(7));
}

TEST(RecurrentLengths, mismatched_lengths_are_rejected) {
  const auto error_of = [](const Shape& x, const InputSpec& lengths) {
    try {
      compile_function(nn::GRU(kIn, kHidden),
                       [](const nn::GRU& net, const Inputs& in) {
                         return net(in["x"], std::nullopt, in["lengths"]).output;
                       },
                       {.inputs = {{"x", x}, lengths}, .device = {.kind = "cpu"}});
      return std::string("nothing was thrown");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(error_of({5, 3, kIn}, {"lengths", {2}, i32}),
              HasSubstr("expected a length for each sequence of the batch, got [2] for x [5,3,2]"));
  EXPECT_THAT(error_of({5, kIn}, {"lengths", {1}, i32}), HasSubstr("for x [5,2]"));
  EXPECT_THAT(error_of({5, 3, kIn}, {"lengths", {3}}), HasSubstr("expected i32 lengths, got f32"));
}

}  // namespace
}  // namespace tensorgrad::testing
