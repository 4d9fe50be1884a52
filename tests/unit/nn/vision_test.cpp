// SPDX-License-Identifier: MIT
// Layers for images: initial values, and training of a network.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

template <class Layer>
struct VisionModel {
  Layer layer;
  TG_MODULE(layer)
};

// Returns the shapes of the parameters. Expects that values are uniform within +-1/sqrt(fan_in).
template <class Layer>
std::map<std::string, Shape> begins_within(const Layer& layer, double fan_in) {
  CompiledFunction forward =
      compile_function(VisionModel<Layer>{layer},
                       [](const VisionModel<Layer>&, const Inputs&) { return zeros({1}); },
                       {.device = {.kind = "cpu"}});
  std::map<std::string, Shape> shapes;
  const double bound = 1 / std::sqrt(fan_in);
  for (const auto& [name, tensor] : forward.download_params()) {
    const std::vector<float> values = tensor.floats();
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*least, -bound) << name;
    EXPECT_LE(*most, bound) << name;
    if (values.size() > 200) {
      EXPECT_LT(*least, -0.9 * bound) << name;
      EXPECT_GT(*most, 0.9 * bound) << name;
    }
    shapes[name.substr(6)] = tensor.shape;
  }
  return shapes;
}

using Shapes = std::map<std::string, Shape>;

TEST(Conv2dLayer, initial_values_match_pytorch) {
  EXPECT_EQ(begins_within(nn::Conv2d(6, 32, {3, 2}, {.groups = 2}), 18),
            (Shapes{{"weight", {32, 3, 3, 2}}, {"bias", {32}}}));
  EXPECT_EQ(begins_within(nn::Conv2d(3, 16, 5, {}, false), 75),
            (Shapes{{"weight", {16, 3, 5, 5}}}));
}

TEST(Conv1dLayer, initial_values_match_pytorch) {
  EXPECT_EQ(begins_within(nn::Conv1d(8, 16, 3), 24),
            (Shapes{{"weight", {16, 8, 3}}, {"bias", {16}}}));
}

// The fan-in counts the outputs of a group: PyTorch multiplies the sizes of all axes of the weight
// but the first.
TEST(ConvTransposeLayers, initial_values_match_pytorch) {
  EXPECT_EQ(begins_within(nn::ConvTranspose2d(8, 12, 3, {.groups = 2}), 54),
            (Shapes{{"weight", {8, 6, 3, 3}}, {"bias", {12}}}));
  EXPECT_EQ(begins_within(nn::ConvTranspose1d(16, 4, 5), 20),
            (Shapes{{"weight", {16, 4, 5}}, {"bias", {4}}}));
}

Shape shape_of(const nn::Sequential& net, const Shape& x) {
  Shape shape;
  compile_function(VisionModel<nn::Sequential>{net},
                   [&](const VisionModel<nn::Sequential>& model, const Inputs& in) {
                     const Tensor y = model.layer(in["x"]);
                     shape = y.shape();
                     return y;
                   },
                   {.inputs = {{"x", x}}, .device = {.kind = "cpu"}});
  return shape;
}

TEST(VisionLayers, work_in_sequential) {
  const nn::Sequential net(
      nn::Conv2d(3, 8, 3, {.stride = 2, .padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
      nn::Upsample({2, 3}), nn::AvgPool2d({1, 3}), nn::ConvTranspose2d(8, 4, 2, {.stride = 2}),
      nn::AdaptiveAvgPool2d({3, 5}), nn::Flatten(2), nn::ConvTranspose1d(4, 6, 3),
      nn::Conv1d(6, 2, 3, {.padding = 1}), nn::Flatten());
  EXPECT_EQ(shape_of(net, {5, 3, 16, 12}), Shape({5, 2 * 17}));
  EXPECT_EQ(shape_of(nn::Sequential(nn::Upsample(2, Interpolation::kBilinear), nn::Flatten()),
                     {2, 3, 4, 5}),
            Shape({2, 3 * 8 * 10}));
}

// Four classes of 8x8 images, each with a bar in another quarter.
TEST(VisionLayers, learn) {
  const nn::Sequential net(nn::Conv2d(1, 4, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                           nn::Conv2d(4, 8, 3), nn::ReLU(), nn::AdaptiveAvgPool2d(2), nn::Flatten(),
                           nn::Linear(32, 4));
  const auto loss = [](const nn::Sequential& model, const Inputs& in) {
    return cross_entropy(model(in["x"]), in["y"]);
  };
  auto trainer = compile(net, loss,
                         {.inputs = {{"x", {16, 1, 8, 8}}, {"y", {16}, i32}},
                          .optimizer = optim::AdamW{.lr = 1e-2},
                          .device = {.kind = "cpu"}});
  std::vector<float> x(16 * 64, 0);
  std::vector<std::int32_t> y(16);
  for (std::size_t i = 0; i < 16; ++i) {
    y[i] = static_cast<std::int32_t>(i % 4);
    const std::size_t top = i % 4 / 2 * 4 + i / 8, left = i % 2 * 4;
    for (std::size_t j = 0; j < 4; ++j) x[i * 64 + top * 8 + left + j] = 1;
  }
  double now = 0;
  for (int step = 0; step < 60; ++step) now = trainer.step({{"x", x}, {"y", y}}).loss;
  EXPECT_LT(now, 0.1);
}

}  // namespace
}  // namespace tensorgrad::testing
