// SPDX-License-Identifier: MIT
// Imports PyTorch weights with other element types and names (make_weight_fixtures.py). Compares
// the elements, and the logits of a CNN and of a transformer.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/fixture.h"
#include "support/source_path.h"

namespace tensorgrad::testing {
namespace {

std::string path_of(const std::string& name) { return test::source_path("tests/golden/" + name); }

TEST(Weights, elements_convert_as_in_torch) {
  const Fixture want("weights_numbers.safetensors");
  const auto got = read_weights(path_of("weights_numbers.safetensors"), {.ignore = {"as/*"}});
  for (const std::string name : {"half", "brain", "double"}) {
    const std::vector<float> given = got.at(name).floats();
    const std::vector<float> expected = want.values<float>("as/" + name);
    ASSERT_EQ(given.size(), expected.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      EXPECT_EQ(std::isnan(given[i]), std::isnan(expected[i])) << name << ' ' << i;
      if (std::isnan(expected[i])) continue;
      EXPECT_EQ(given[i], expected[i]) << name << ' ' << i;
      EXPECT_EQ(std::signbit(given[i]), std::signbit(expected[i])) << name << ' ' << i;
    }
  }
  EXPECT_EQ(got.at("integer").ints(), want.values<std::int32_t>("as/integer"));
  EXPECT_EQ(got.at("byte").ints(), (std::vector<std::int32_t>{0, 127, 128, 255}));
  EXPECT_EQ(got.at("bool").dtype, boolean);
  EXPECT_EQ(got.at("bool").ints(), (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(got.size(), 6U);
}

struct PlainCnn {
  nn::Conv2d first{1, 4, 3, {.padding = 1}};
  nn::BatchNorm2d norm{4};
  nn::Conv2d second{4, 6, 3};
  nn::Linear out{24, 5};
  TG_MODULE(first, norm, second, out)
  Tensor operator()(Tensor x) const {
    x = max_pool2d(relu(norm(first(x))), 2);
    return out(flatten(relu(second(x)), 1));
  }
};

struct Encoder {
  std::vector<nn::TransformerEncoderLayer> layers = std::vector<nn::TransformerEncoderLayer>(
      2, nn::TransformerEncoderLayer(
             8, 2, {.dim_feedforward = 16, .dropout = 0, .norm_first = true, .gelu = true}));
  nn::Linear head{8, 7, false};
  TG_MODULE(layers, head)
  Tensor operator()(Tensor x) const {
    for (const auto& layer : layers) x = layer(x, {.causal = true});
    return head(x);
  }
};

const ImportOptions kCnnNames{
    .names = {{"0.*", "first.*"}, {"1.*", "norm.*"}, {"4.*", "second.*"}, {"7.*", "out.*"}},
    .ignore = {"expected/*", "*.num_batches_tracked"}};
const ImportOptions kEncoderNames{
    .names = {{"transformer.h.*.mlp.c_fc.weight", "layers.*.linear1.weight", {1, 0}},
              {"transformer.h.*.mlp.c_proj.weight", "layers.*.linear2.weight", {1, 0}},
              {"transformer.h.*.mlp.c_fc.bias", "layers.*.linear1.bias"},
              {"transformer.h.*.mlp.c_proj.bias", "layers.*.linear2.bias"},
              {"transformer.h.*", "layers.*"}},
    .ignore = {"expected/*", "*.masked_bias"}};

void expect_logits(const Fixture& fixture, const std::vector<float>& got, double tolerance) {
  const auto want = fixture.values<float>("expected/out");
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

// Imports into a compiled function, then into a trainer, whose attached functions must see the
// weights.
template <class Model>
void check_model(const std::string& name, const ImportOptions& options, const std::string& device) {
  const Fixture fixture(name);
  const double tolerance = device == "cpu" ? 1e-5 : 1e-4;
  const DeviceOptions where{.kind = device, .allow_software = true};
  const std::vector<InputSpec> inputs = {{"x", fixture.shape("expected/in")}};
  const auto apply = [](const Model& model, const Inputs& in) { return model(in["x"]); };
  const std::vector<float> x = fixture.values<float>("expected/in");
  auto forward = compile_function(Model{}, apply, {.inputs = inputs, .device = where});
  forward.import_weights(path_of(name), options);
  expect_logits(fixture, forward({{"x", x}}).floats(), tolerance);

  auto trainer = compile(
      Model{}, [](const Model& model, const Inputs& in) { return mean(square(model(in["x"]))); },
      {.inputs = inputs, .optimizer = optim::SGD{}, .ema_decay = 0.9, .device = where});
  trainer.import_weights(path_of(name), options);
  auto attached = trainer.attach(apply, {.inputs = inputs});
  expect_logits(fixture, attached({{"x", x}}).floats(), tolerance);
  for (const auto& [key, average] : trainer.download_ema())
    EXPECT_EQ(average.bytes, trainer.download_params().at(key).bytes) << key;
  EXPECT_GT(trainer.step({{"x", x}}).loss, 0);
}

TEST(Weights, of_a_network_with_batch_norm_match_its_logits) {
  check_model<PlainCnn>("weights_cnn.safetensors", kCnnNames, "cpu");
}

TEST(Weights, of_a_transformer_of_other_names_and_layouts_match_its_logits) {
  check_model<Encoder>("weights_encoder.safetensors", kEncoderNames, "cpu");
}

TEST(Weights, logits_match_on_webgpu) {
  check_model<PlainCnn>("weights_cnn.safetensors", kCnnNames, "webgpu");
  check_model<Encoder>("weights_encoder.safetensors", kEncoderNames, "webgpu");
}

// The head keeps its initial values; all other values are those of the file.
TEST(Weights, partial_import_keeps_the_other_weights) {
  ImportOptions options = kEncoderNames;
  options.ignore.emplace_back("head.*");
  options.partial = true;
  auto forward = compile_function(
      Encoder{}, [](const Encoder& model, const Inputs& in) { return model(in["x"]); },
      {.inputs = {{"x", {2, 5, 8}}}, .device = {.kind = "cpu"}});
  const auto before = forward.download_params();
  forward.import_weights(path_of("weights_encoder.safetensors"), options);
  const auto after = forward.download_params();
  const auto given = read_weights(path_of("weights_encoder.safetensors"), options);
  EXPECT_EQ(after.at("head.weight").bytes, before.at("head.weight").bytes);
  for (const auto& [name, tensor] : given) EXPECT_EQ(after.at(name).bytes, tensor.bytes) << name;
  EXPECT_EQ(given.size() + 1, after.size());
}

}  // namespace
}  // namespace tensorgrad::testing
