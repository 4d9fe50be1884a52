// SPDX-License-Identifier: MIT
// Options of single layers of a language model, schedules of layers, and mixtures of experts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "support/message_of.h"
#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using nn::MixerKind;

std::string refusal_of(const nn::LanguageModelConfig& config) {
  return test::message_of([&] { nn::LanguageModel{config}; });
}

std::map<std::string, HostTensor> initial_params(const nn::LanguageModelConfig& config) {
  return compile_function(
             nn::LanguageModel(config),
             [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
             {.inputs = {{"tokens", {1, 1}, i32}}, .device = {.kind = "cpu"}, .seed = 5})
      .download_params();
}

// Returns six layers: Mamba, attention and an MLP, twice.
nn::LanguageModelConfig twice() {
  return small_mamba(11, nn::mixer_schedule("mamba1 attention mlp", 6), 24);
}

TEST(LayerOptions, ApplyToTheFirstLayerAndEachPeriodBehindIt) {
  nn::LanguageModelConfig config = twice();
  config.layer_options = {
      {.first = 0, .period = 3, .mamba = nn::MambaOptions{.d_state = 7}},
      {.first = 3, .mamba = nn::MambaOptions{.d_state = 9}},
      {.first = 4,
       .period = 0,
       .attention = nn::AttentionLayer{.heads = 6, .options = {.kv_heads = 3, .max_length = 8}}},
      {.first = 5, .mlp = nn::MlpLayer{.kind = nn::MlpKind::kGelu, .width = 10}}};
  const auto params = initial_params(config);
  const auto shape = [&](int layer, const char* name) {
    return params.at("backbone.layers." + std::to_string(layer) + ".mixer." + name).shape;
  };
  EXPECT_EQ(shape(0, "A_log"), (Shape{24, 7}));
  EXPECT_EQ(shape(3, "A_log"), (Shape{24, 9}));  // the later entry applies
  EXPECT_EQ(shape(1, "in_proj.weight"), (Shape{36, 12}));
  EXPECT_EQ(shape(4, "in_proj.weight"), (Shape{24, 12}));
  EXPECT_EQ(shape(2, "fc1.weight"), (Shape{64, 12}));
  EXPECT_EQ(shape(5, "fc1.weight"), (Shape{10, 12}));
  EXPECT_EQ(shape(5, "fc1.bias"), (Shape{10}));
  EXPECT_EQ(nn::layer_config(config, 3).mamba.d_state, 9);
  EXPECT_EQ(nn::layer_config(config, 1).heads, 2);
  EXPECT_EQ(nn::layer_config(config, 4).heads, 6);
  EXPECT_TRUE(nn::layer_config(config, 4).layer_options.empty());
  EXPECT_EQ(lm::max_context(config), 8);  // the size of the shorter cache
}

TEST(LayerOptions, AreRefusedWhereNoLayerTakesThem) {
  const auto refusal = [](const nn::LayerOptions& entry) {
    nn::LanguageModelConfig config = twice();
    config.layer_options = {{.first = 0, .mamba = nn::MambaOptions{}}, entry};
    return refusal_of(config);
  };
  const std::string entry = "LanguageModel: layer_options[1]: ";
  EXPECT_EQ(refusal({.first = 6, .mlp = nn::MlpLayer{}}),
            entry + "first: expected a layer from 0 to 5, got 6");
  EXPECT_EQ(refusal({.first = -1}), entry + "first: expected a layer from 0 to 5, got -1");
  EXPECT_EQ(refusal({.period = -3}), entry + "period: expected 0 or more, got -3");
  EXPECT_EQ(refusal({.first = 1, .period = 3, .mlp = nn::MlpLayer{}}),
            entry + "has options of mlp, but no layer of it is one");
  EXPECT_EQ(refusal({.first = 1, .period = 1, .moe = nn::MixtureOfExperts::Options{}}),
            entry + "has options of moe, but no layer of it is one");
  EXPECT_EQ(refusal({.first = 1, .period = 4, .mlp = nn::MlpLayer{}}), "no error");
  EXPECT_THROW((void)nn::layer_config(twice(), 6), UserError);
}

TEST(LayerOptions, LearnedPositionsLimitEachCacheAndExcludeRotation) {
  nn::LanguageModelConfig config = nn::gpt2_config(11, 12, 2, 2, 16);
  config.layer_options = {
      {.first = 2,
       .attention = nn::AttentionLayer{.heads = 3, .options = {.max_length = 99, .rope = false}}}};
  const nn::LanguageModel model(config);
  EXPECT_EQ(nn::layer_config(model.config, 2).attention.max_length, 16);
  config.layer_options[0].attention->options.rope = true;
  EXPECT_EQ(refusal_of(config),
            "LanguageModel: n_positions: learned positions cannot be combined with attention.rope; "
            "expected attention.rope = false");
}

TEST(LayerOptions, SchedulesRepeatAList) {
  using Kinds = std::vector<MixerKind>;
  EXPECT_EQ(nn::mixer_schedule("mamba2 mlp  attention moe", 6),
            (Kinds{MixerKind::kMamba2, MixerKind::kMlp, MixerKind::kAttention, MixerKind::kMoe,
                   MixerKind::kMamba2, MixerKind::kMlp}));
  EXPECT_EQ(nn::mixer_schedule("mamba3", 2), (Kinds{MixerKind::kMamba3, MixerKind::kMamba3}));
  for (const char* name : {"", " ", "mamba2 lstm"})
    EXPECT_THROW((void)nn::mixer_schedule(name, 2), UserError) << name;
}

TEST(CausalAttention, RefusesComponentsThatCannotBeRotated) {
  EXPECT_THROW(nn::CausalAttention(12, 2, {.rope_dims = 3}), ShapeError);
  EXPECT_THROW(nn::CausalAttention(12, 2, {.rope_dims = 8}), ShapeError);
  EXPECT_THROW(nn::CausalAttention(12, 2, {.rope_dims = -2}), ShapeError);
}

TEST(Mamba, RefusesWeightsOfNormsThatItDoesNotHave) {
  EXPECT_THROW(nn::Mamba(8, {.b_c_dt_norm_weights = true}), UserError);
}

// Computes the experts one after the other in double precision.
TEST(MixtureOfExperts, IsTheWeighedSumOfTheBestExperts) {
  constexpr std::int64_t kTokens = 6, kSize = 5, kWidth = 3, kExperts = 4, kBest = 2;
  const nn::MixtureOfExperts layer(kSize, {.experts = kExperts, .top_k = kBest, .width = kWidth});
  auto function = compile_function(
      layer,
      [](const nn::MixtureOfExperts& net, const Inputs& in) {
        return std::map<std::string, Tensor>{{"y", net(in["x"])}, {"p", net.routing(in["x"])}};
      },
      {.inputs = {{"x", {kTokens, kSize}}}, .device = {.kind = "cpu"}, .seed = 4});
  auto params = function.download_params();
  std::vector<float> router = params.at("router.weight").floats();
  for (float& v : router) v *= 4;
  params["router.weight"] = HostTensor::from({kExperts, kSize}, router);
  function.upload_params(params);
  std::vector<float> x;
  for (std::int64_t i = 0; i < kTokens * kSize; ++i)
    x.push_back(std::sin(static_cast<float>(3 * i + 1)));
  std::fill(x.end() - kSize, x.end(), 0.0F);  // all experts are equal for the last token
  const NamedTensors got = function.run({{"x", x}});
  const std::vector<float> y = got.at("y").floats(), p = got.at("p").floats();
  const std::vector<float> fc1 = params.at("fc1.weight").floats(),
                           fc2 = params.at("fc2.weight").floats();
  const auto dot = [&](const std::vector<float>& w, std::int64_t row, std::int64_t token) {
    double sum = 0;
    for (std::int64_t i = 0; i < kSize; ++i)
      sum += double{w[static_cast<std::size_t>(row * kSize + i)]} *
             x[static_cast<std::size_t>(token * kSize + i)];
    return sum;
  };
  for (std::int64_t token = 0; token < kTokens; ++token) {
    std::vector<double> odds;
    for (std::int64_t e = 0; e < kExperts; ++e) odds.push_back(std::exp(dot(router, e, token)));
    const double all = std::accumulate(odds.begin(), odds.end(), 0.0);
    std::vector<std::int64_t> order(kExperts);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return odds[static_cast<std::size_t>(a)] > odds[static_cast<std::size_t>(b)];
    });
    std::vector<double> want(kSize, 0), factors(kExperts, 0);
    for (std::int64_t k = 0; k < kBest; ++k) {
      const std::int64_t e = order[static_cast<std::size_t>(k)];
      const double factor = odds[static_cast<std::size_t>(e)] / all;
      factors[static_cast<std::size_t>(e)] = factor;
      for (std::int64_t j = 0; j < kWidth; ++j) {
        const double gate = dot(fc1, e * kWidth + j, token);
        const double up = dot(fc1, (kExperts + e) * kWidth + j, token);
        const double h = gate / (1 + std::exp(-gate)) * up;
        for (std::int64_t i = 0; i < kSize; ++i)
          want[static_cast<std::size_t>(i)] +=
              factor * h * fc2[static_cast<std::size_t>(i * kExperts * kWidth + e * kWidth + j)];
      }
    }
    for (std::int64_t e = 0; e < kExperts; ++e)
      EXPECT_NEAR(p[static_cast<std::size_t>(token * kExperts + e)],
                  factors[static_cast<std::size_t>(e)], 1e-6)
          << token << ' ' << e;
    for (std::int64_t i = 0; i < kSize; ++i)
      EXPECT_NEAR(y[static_cast<std::size_t>(token * kSize + i)], want[static_cast<std::size_t>(i)],
                  1e-6)
          << token << ' ' << i;
  }
  EXPECT_EQ(p[(kTokens - 1) * kExperts], 0.25F);  // the first of equal experts
  EXPECT_EQ(p[(kTokens - 1) * kExperts + 2], 0.0F);
}

TEST(MixtureOfExperts, RefusesMoreChosenExpertsThanThereAre) {
  EXPECT_THROW(nn::MixtureOfExperts(4, {.experts = 2, .top_k = 3}), UserError);
  EXPECT_THROW(nn::MixtureOfExperts(4, {.experts = 2, .top_k = 0}), UserError);
}

// Returns four layers. The second half has other options of attention and of the mixture.
nn::LanguageModelConfig two_kinds_of_each() {
  nn::LanguageModelConfig config = small_mamba(11, nn::mixer_schedule("attention moe", 4), 24);
  config.attention.rope = false;
  config.moe = {.experts = 3, .top_k = 2, .width = 8};
  config.layer_options = {
      {.first = 2,
       .attention =
           nn::AttentionLayer{
               .heads = 2,
               .options = {.kv_heads = 1, .max_length = 24, .bias = true, .rope_dims = 4}}},
      {.first = 3, .moe = nn::MixtureOfExperts::Options{.experts = 4, .top_k = 1, .width = 5}}};
  return config;
}

TEST(LayerOptions, TrainOnWebGpuAsOnTheCpu) {
  expect_trained_alike(trained(two_kinds_of_each(), 2, {.kind = "webgpu", .allow_software = true}),
                       trained(two_kinds_of_each(), 2, {.kind = "cpu"}));
}

}  // namespace
}  // namespace tensorgrad::testing
