// SPDX-License-Identifier: MIT
// Mamba layers and language models: initial values, results of chunks and single steps, causality,
// and gradients of the inputs of a block. mamba_training_test.cpp tests gradients of parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>

#include "support/message_of.h"
#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"
#include "unit/nn/differences.h"
#include "unit/nn/other_mamba.h"

namespace tensorgrad::testing {
namespace {

using nn::LanguageModel;
using nn::LanguageModelConfig;
using nn::MixerKind;

constexpr std::int64_t kSymbols = 11;

LanguageModelConfig small(std::vector<MixerKind> layers) {
  return small_mamba(kSymbols, std::move(layers), 24);
}

LanguageModelConfig mixed() { return mixed_mamba(kSymbols, 24); }

std::vector<std::int32_t> some_tokens(std::int64_t count, unsigned seed) {
  return random_tokens(count, kSymbols, seed);
}

CompiledFunction whole_model(const LanguageModelConfig& config, std::int64_t batch,
                             std::int64_t length, const std::string& device = "cpu") {
  return compile_function(
      LanguageModel(config),
      [](const LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {batch, length}, i32}},
       .device = {.kind = device, .allow_software = true},
       .seed = 5});
}

CompiledFunction in_pieces(const LanguageModelConfig& config, std::int64_t batch,
                           const std::string& device = "cpu") {
  return compile_function(LanguageModel(config),
                          [](const LanguageModel& net, const Inputs& in) {
                            return net.resume(in["tokens"], in["keep"]);
                          },
                          {.inputs = {{"tokens", {batch, kDynamic}, i32}, {"keep", {batch}}},
                           .device = {.kind = device, .allow_software = true},
                           .seed = 5});
}

TEST(Mamba, has_the_parameters_of_its_paper) {
  const LanguageModelConfig config{.vocab_size = 65, .d_model = 128, .n_layer = 2};
  const auto params = whole_model(config, 1, 1).download_params();
  std::int64_t count = 0;
  for (const auto& [name, values] : params) count += numel(values.shape);
  EXPECT_EQ(count, 241664);
  const std::string mixer = "backbone.layers.1.mixer.";
  EXPECT_EQ(params.at(mixer + "conv1d.weight").shape, (Shape{256, 1, 4}));
  EXPECT_EQ(params.at(mixer + "x_proj.weight").shape, (Shape{40, 256}));
  EXPECT_EQ(params.at(mixer + "dt_proj.weight").shape, (Shape{256, 8}));
  EXPECT_FALSE(params.contains(mixer + "in_proj.bias"));
  const std::vector<float> logs = params.at(mixer + "A_log").floats();
  for (std::size_t i = 0; i < logs.size(); ++i)
    ASSERT_FLOAT_EQ(logs[i], std::log(static_cast<float>(i % 16 + 1)));
  double least = 1, most = 0;
  for (const double bias : params.at(mixer + "dt_proj.bias").floats()) {
    least = std::min(least, std::log1p(std::exp(bias)));
    most = std::max(most, std::log1p(std::exp(bias)));
  }
  EXPECT_GE(least, 1e-3 * (1 - 1e-5));
  EXPECT_LT(least, 1.2e-3);
  EXPECT_LE(most, 0.1 * (1 + 1e-5));
  EXPECT_GT(most, 0.08);
  double widest = 0;
  for (const double w : params.at(mixer + "out_proj.weight").floats())
    widest = std::max(widest, std::abs(w));
  EXPECT_LE(widest, 1 / std::sqrt(256.0 * 2));
  EXPECT_GT(widest, 0.99 / std::sqrt(256.0 * 2));
}

// Expects that the largest absolute value is just below `bound`, as if drawn from [-bound, bound).
void expect_bound(const std::map<std::string, HostTensor>& params, const std::string& name,
                  double bound) {
  double largest = 0;
  for (const double v : params.at(name).floats()) largest = std::max(largest, std::abs(v));
  EXPECT_LE(largest, bound * (1 + 1e-6)) << name;
  EXPECT_GT(largest, 0.95 * bound) << name;
}

// Bounds as in mamba-ssm and PyTorch: 1 / sqrt(fan_in). The fan-in is the number of taps, 4, for
// convolutions, and the rank for dt_proj. The bound of layers that add to the residual stream is
// divided by sqrt(5), because there are five of them.
TEST(LanguageModel, initial_values_match_mamba_ssm) {
  LanguageModelConfig config{
      .vocab_size = 99, .d_model = 48, .n_layer = 5, .layers = mixed().layers};
  config.mamba2 = {.d_state = 16, .head_dim = 1};
  config.mamba3 = {.d_state = 16, .head_dim = 8};
  config.tie_embeddings = false;
  const auto params = whole_model(config, 1, 1).download_params();
  const auto mixer = [](int layer, const std::string& name) {
    return "backbone.layers." + std::to_string(layer) + ".mixer." + name;
  };
  for (const int layer : {0, 2, 4}) {  // Mamba, Mamba-2 and Mamba-3
    EXPECT_EQ(params.at(mixer(layer, "D")).floats(),
              std::vector<float>(params.at(mixer(layer, "D")).floats().size(), 1));
    expect_bound(params, mixer(layer, "in_proj.weight"), 1 / std::sqrt(48.0));
    expect_bound(params, mixer(layer, "out_proj.weight"), 1 / std::sqrt(96.0 * 5));
  }
  for (const int layer : {0, 2}) {
    expect_bound(params, mixer(layer, "conv1d.weight"), 0.5);
    expect_bound(params, mixer(layer, "conv1d.bias"), 0.5);
  }
  expect_bound(params, mixer(0, "x_proj.weight"), 1 / std::sqrt(96.0));
  expect_bound(params, mixer(0, "dt_proj.weight"), 1 / std::sqrt(3.0));
  expect_bound(params, mixer(1, "fc1.weight"), 1 / std::sqrt(48.0));
  expect_bound(params, mixer(1, "fc2.weight"), 1 / std::sqrt(128.0 * 5));
  expect_bound(params, mixer(3, "in_proj.weight"), 1 / std::sqrt(48.0));
  expect_bound(params, mixer(3, "out_proj.weight"), 1 / std::sqrt(48.0 * 5));
  expect_bound(params, "lm_head.weight", 1 / std::sqrt(48.0));
  double squares = 0;
  const std::vector<float> embedding = params.at("backbone.embedding.weight").floats();
  for (const double v : embedding) squares += v * v;
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(embedding.size())), 0.02, 0.001);
  // dt of Mamba-2 is log-uniform from 0.001 to 0.1.
  double sum = 0;
  const std::vector<float> biases = params.at(mixer(2, "dt_bias")).floats();
  ASSERT_EQ(biases.size(), 96U);
  for (const double bias : biases) {
    const double dt = std::log1p(std::exp(bias));
    EXPECT_GE(dt, 1e-3 * (1 - 1e-5));
    EXPECT_LE(dt, 0.1 * (1 + 1e-5));
    sum += std::log(dt);
  }
  EXPECT_NEAR(sum / 96, std::log(1e-2), 0.1 * std::log(100.0));
  for (const auto& [name, values] : params) {
    if (!name.ends_with("norm.weight") && !name.ends_with("norm_f.weight")) continue;
    EXPECT_EQ(values.floats(), std::vector<float>(values.floats().size(), 1)) << name;
  }
}

TEST(Mamba2, initial_decays_are_from_1_to_16) {
  LanguageModelConfig config{
      .vocab_size = 3, .d_model = 64, .n_layer = 1, .layers = {MixerKind::kMamba2}};
  config.mamba2.head_dim = 1;
  const auto params = whole_model(config, 1, 1).download_params();
  const std::vector<float> logs = params.at("backbone.layers.0.mixer.A_log").floats();
  ASSERT_EQ(logs.size(), 128U);
  double sum = 0;
  for (const double each : logs) {
    EXPECT_GE(each, 0);
    EXPECT_LE(each, std::log(16.0) + 1e-6);
    sum += std::exp(each);
  }
  EXPECT_NEAR(sum / 128, 8.5, 1.5);
  EXPECT_EQ(params.at("backbone.layers.0.mixer.in_proj.weight").shape,
            (Shape{2 * 128 + 2 * 128 + 128, 64}));
  EXPECT_EQ(params.at("backbone.layers.0.mixer.norm.weight").shape, (Shape{128}));
}

TEST(Mamba3, initial_decays_are_from_1_to_16) {
  LanguageModelConfig config{
      .vocab_size = 3, .d_model = 64, .n_layer = 1, .layers = {MixerKind::kMamba3}};
  config.mamba3.head_dim = 1;
  const auto params = whole_model(config, 1, 1).download_params();
  const auto expect_even = [&](const char* name, double least, double most) {
    const std::vector<float> biases =
        params.at(std::string("backbone.layers.0.mixer.") + name).floats();
    ASSERT_EQ(biases.size(), 128U);
    double sum = 0;  // of logarithms, which are uniform
    for (const double bias : biases) {
      const double begins = std::log1p(std::exp(bias));
      EXPECT_GE(begins, least * (1 - 1e-5)) << name;
      EXPECT_LE(begins, most * (1 + 1e-5)) << name;
      sum += std::log(begins);
    }
    EXPECT_NEAR(sum / 128, std::log(least * most) / 2, 0.1 * std::log(most / least)) << name;
  };
  expect_even("A_bias", 1, 16);
  expect_even("dt_bias", 1e-3, 0.1);
}

// Processes a prompt with scans, then single tokens, then another chunk.
void steps_and_pieces_give_the_whole(const LanguageModelConfig& config) {
  constexpr std::int64_t kBatch = 2, kLength = 17;
  const std::vector<std::int32_t> tokens = some_tokens(kBatch * kLength, 3);
  CompiledFunction whole = whole_model(config, kBatch, kLength);
  CompiledFunction pieces = in_pieces(config, kBatch);
  const std::vector<float> want = whole({{"tokens", tokens}}).floats();
  std::vector<float> keep(kBatch, 0);
  for (int scoped_call = 0; scoped_call < 2; ++scoped_call) {  // the second starts new texts
    std::int64_t begin = 0;
    for (const std::int64_t end : {9L, 10L, 11L, 12L, 16L, 17L}) {
      std::vector<std::int32_t> part;
      for (std::int64_t b = 0; b < kBatch; ++b) {
        part.insert(part.end(), tokens.begin() + b * kLength + begin,
                    tokens.begin() + b * kLength + end);
      }
      std::fill(keep.begin(), keep.end(), begin == 0 ? 0.0F : 1.0F);
      const std::vector<float> got = pieces({{"tokens", part}, {"keep", keep}}).floats();
      const auto width = static_cast<std::size_t>((end - begin) * kSymbols);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t b = i / width;
        const std::size_t at =
            (b * kLength + static_cast<std::size_t>(begin)) * kSymbols + i % width;
        ASSERT_NEAR(got[i], want[at], 1e-5)
            << "turn " << scoped_call << ", from " << begin << ", " << i;
      }
      begin = end;
    }
  }
}

TEST(LanguageModel, steps_and_pieces_match_the_whole_text) {
  steps_and_pieces_give_the_whole(mixed());
}
TEST(LanguageModel, steps_and_pieces_by_the_zero_order_hold_match_the_whole_text) {
  LanguageModelConfig config = small({MixerKind::kMamba1, MixerKind::kMamba1});
  config.mamba.bias = config.mamba.x_bias = true;
  config.mamba.discretization = Discretization::kZeroOrderHold;
  steps_and_pieces_give_the_whole(config);
}

// Fills the states with NaN. Then the first of two texts starts anew, and must not be affected. The
// second one continues from its states.
void begins_anew_behind_nan(const std::vector<MixerKind>& layers, const std::string& device) {
  const std::vector<std::int32_t> tokens = some_tokens(2 * 4, 3);
  CompiledFunction pieces = in_pieces(small(layers), 2, device);
  const auto run = [&](std::vector<float> keep) {
    return pieces({{"tokens", tokens}, {"keep", keep}}).floats();
  };
  const auto right = pieces.download_params();
  const std::vector<float> want = run({0, 0});
  auto wrong = right;
  HostTensor& embedding = wrong.at("backbone.embedding.weight");
  const std::vector<float> none(static_cast<std::size_t>(numel(embedding.shape)),
                                std::numeric_limits<float>::quiet_NaN());
  embedding = HostTensor::from(embedding.shape, none);
  pieces.upload_params(wrong);
  run({0, 0});
  pieces.upload_params(right);
  const std::vector<float> got = run({0, 1});
  const auto half = static_cast<std::ptrdiff_t>(got.size() / 2);
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + half, want.begin()));
  EXPECT_TRUE(device != "cpu" || std::isnan(got.back())) << "WGSL need not keep a NaN";
}
TEST(LanguageModel, restarts_after_nan_states) {
  for (const MixerKind kind :
       {MixerKind::kMamba1, MixerKind::kMamba2, MixerKind::kMamba3, MixerKind::kAttention}) {
    SCOPED_TRACE(static_cast<int>(kind));
    begins_anew_behind_nan({kind}, "cpu");
  }
}
TEST(LanguageModel, restarts_after_nan_states_on_webgpu) {
  begins_anew_behind_nan({MixerKind::kMamba1, MixerKind::kAttention}, "webgpu");
}

constexpr std::array kMixers = {MixerKind::kMamba1, MixerKind::kMamba2, MixerKind::kMamba3,
                                MixerKind::kAttention};

// Expects that the logits of previous tokens and of the other text in the batch do not change by a
// bit if a token changes.
void what_comes_later_changes_no_bit(std::int64_t length, const std::string& device,
                                     std::int64_t chunk = 4,
                                     std::span<const MixerKind> kinds = kMixers) {
  std::vector<std::int32_t> tokens = some_tokens(2 * length, 8);
  for (const MixerKind kind : kinds) {
    SCOPED_TRACE(std::to_string(length) + " steps of kind " +
                 std::to_string(static_cast<int>(kind)));
    LanguageModelConfig config = small({kind, kind});
    config.mamba2.chunk = config.mamba3.chunk = chunk;
    CompiledFunction forward = whole_model(config, 2, length, device);
    const std::vector<float> before = forward({{"tokens", tokens}}).floats();
    for (const std::int64_t changed :
         std::set<std::int64_t>{0, 1, 2 * length / 3, length - 2, length - 1}) {
      std::vector<std::int32_t> other = tokens;
      std::int32_t& token = other[static_cast<std::size_t>(changed)];
      token = (token + 1) % static_cast<std::int32_t>(kSymbols);
      const std::vector<float> after = forward({{"tokens", other}}).floats();
      const auto same = static_cast<std::size_t>(changed * kSymbols);
      EXPECT_TRUE(std::equal(before.begin(), before.begin() + changed * kSymbols, after.begin()));
      EXPECT_NE(before[same], after[same]) << "the symbol itself";
      const auto second = before.begin() + length * kSymbols;
      EXPECT_TRUE(std::equal(second, before.end(), after.begin() + length * kSymbols));
    }
  }
}
TEST(LanguageModel, later_tokens_change_no_bit) {
  for (const std::int64_t length : {2, 21, 63, 64, 65, 257, 1000})
    what_comes_later_changes_no_bit(length, "cpu");
}
constexpr std::int64_t kUsualChunk = 64;
static_assert(nn::Mamba2Options{}.chunk == kUsualChunk && nn::Mamba3Options{}.chunk == kUsualChunk);
TEST(LanguageModel, later_tokens_change_no_bit_at_the_default_chunk) {
  what_comes_later_changes_no_bit(257, "cpu", kUsualChunk);
}
TEST(LanguageModel, later_tokens_change_no_bit_on_webgpu) {
  what_comes_later_changes_no_bit(65, "webgpu");
}
// If a text has at most 64 steps, the selective scan uses the kernel for blocks of channels.
TEST(LanguageModel, later_tokens_change_no_bit_of_a_short_text_on_webgpu) {
  what_comes_later_changes_no_bit(64, "webgpu", 4, std::span(kMixers).first(1));
}
TEST(LanguageModel, later_tokens_change_no_bit_at_the_default_chunk_on_webgpu) {
  // Software drivers take seconds for each kind, so this tests only those with such chunks.
  what_comes_later_changes_no_bit(257, "webgpu", kUsualChunk, std::span(kMixers).subspan(1, 2));
}

// Checks the gradients of the input and the initial states of a block in three directions each. The
// loss depends on the output and the final states.
void has_the_gradient_of_differences(MixerKind kind, const LanguageModelConfig& config) {
  constexpr std::int64_t kBatch = 2, kLength = 17;  // more than one chunk of a selective scan
  SCOPED_TRACE(static_cast<int>(kind));
  const nn::MixerBlock block(kind, config);
  std::vector<nn::StateSpec> given = block.state_specs(kBatch);
  for (nn::StateSpec& part : given) part.name = "state " + part.name;
  given.insert(given.begin(), {"x", {kBatch, kLength, config.d_model}});
  FunctionOptions options{.device = {.kind = "cpu"}, .seed = 5};
  for (const nn::StateSpec& each : given) options.inputs.push_back({each.name, each.shape});
  const auto made = [&](bool gradients) {
    return compile_function(
        block,
        [&, gradients](const nn::MixerBlock& net, const Inputs& in) {
          std::vector<Tensor> all;
          for (const nn::StateSpec& each : given) all.push_back(in[each.name]);
          const nn::RecurrentResult after = net.run(all[0], {all.begin() + 1, all.end()});
          Tensor loss = mean(sin(after.y));
          for (const Tensor& each : after.state) loss = loss + mean(sin(each));
          if (!gradients) return std::map<std::string, Tensor>{{"loss", loss}};
          std::map<std::string, Tensor> outputs;
          const std::vector<Tensor> grads = grad(loss, all);
          for (std::size_t i = 0; i < all.size(); ++i) outputs.emplace(given[i].name, grads[i]);
          return outputs;
        },
        options);
  };
  std::mt19937 random(3);
  std::map<std::string, std::vector<float>> at;
  DoubleLeaves leaves;
  FeedView feed;
  for (const nn::StateSpec& each : given) {
    std::vector<float>& values = at[each.name];
    values.resize(static_cast<std::size_t>(numel(each.shape)));
    for (float& v : values) v = static_cast<float>(random() % 2001) / 1000.0F - 1;
    // The number of keys in the cache of attention.
    if (each.name == "state position") values.assign(kBatch, 7);
    leaves[each.name] = as_doubles(values);
    feed.add(each.name, values);
  }
  CompiledFunction forward = made(true);
  for (const auto& [name, tensor] : forward.download_params())
    leaves[name] = as_doubles(tensor.floats());
  const LossInDouble loss(made(false));
  const NamedTensors gradients = forward.run(feed);
  for (const nn::StateSpec& each : given) {
    if (each.name == "state position") continue;
    expect_gradient_of_differences(loss, leaves, each.name, gradients.at(each.name).floats(),
                                   random);
  }
}

TEST(MixerBlock, input_gradient_matches_differences) {
  for (const MixerKind kind : {MixerKind::kMamba1, MixerKind::kMamba2, MixerKind::kMamba3,
                               MixerKind::kAttention, MixerKind::kMlp})
    has_the_gradient_of_differences(kind, small({kind}));
}
TEST(MixerBlock, input_gradient_with_other_options_matches_differences) {
  for (const MixerKind kind :
       {MixerKind::kMamba1, MixerKind::kMamba2, MixerKind::kMamba3, MixerKind::kAttention})
    has_the_gradient_of_differences(kind, other_mamba(kSymbols, {kind}, 24));
}
TEST(MixerBlock, OfGpt2HasTheGradientOfDifferences) {
  for (const MixerKind kind : {MixerKind::kAttention, MixerKind::kMlp})
    has_the_gradient_of_differences(kind, nn::gpt2_config(kSymbols, 12, 1, 2, 24));
}
TEST(MixerBlock, OfJambaAndBambaHasTheGradientOfDifferences) {
  LanguageModelConfig config = small({MixerKind::kMoe});
  config.moe = {.experts = 3, .top_k = 2, .width = 7};
  has_the_gradient_of_differences(MixerKind::kMoe, config);
  config.mamba.b_c_dt_norm = config.mamba.b_c_dt_norm_weights = true;
  has_the_gradient_of_differences(MixerKind::kMamba1, config);
  config.attention.rope_dims = 2;
  has_the_gradient_of_differences(MixerKind::kAttention, config);
  config.mlp_bias = true;
  has_the_gradient_of_differences(MixerKind::kMlp, config);
}
TEST(MixerBlock, gradient_with_a_norm_after_mamba3_matches_differences) {
  for (const std::int64_t ranks : {1, 2}) {
    for (const nn::OutNorm norm : {nn::OutNorm::kBeforeGate, nn::OutNorm::kAfterGate}) {
      LanguageModelConfig config = small({MixerKind::kMamba3});
      config.mamba3.ranks = ranks;
      config.mamba3.out_norm = norm;
      has_the_gradient_of_differences(MixerKind::kMamba3, config);
    }
  }
}

// Greedy generation with the parameters of a trainer: the prompt in one call, then one token per
// call.
TEST(LanguageModel, generates_from_the_parameters_of_a_trainer) {
  constexpr std::int64_t kPrompt = 6, kMore = 5;
  auto trainer = compile(LanguageModel(mixed()),
                         [](const LanguageModel& net, const Inputs& in) {
                           return cross_entropy(net(in["tokens"]), in["next"]);
                         },
                         {.inputs = {{"tokens", {2, 9}, i32}, {"next", {2, 9}, i32}},
                          .optimizer = optim::AdamW{.lr = 1e-2},
                          .device = {.kind = "cpu"}});
  for (unsigned step = 0; step < 3; ++step) {
    trainer.step({{"tokens", some_tokens(18, step)}, {"next", some_tokens(18, step + 9)}});
  }
  auto next = trainer.attach([](const LanguageModel& net,
                                const Inputs& in) { return net.resume(in["tokens"], in["keep"]); },
                             {.inputs = {{"tokens", {1, kDynamic}, i32}, {"keep", {1}}}});
  auto whole =
      trainer.attach([](const LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
                     {.inputs = {{"tokens", {1, kDynamic}, i32}}});
  std::vector<std::int32_t> text = some_tokens(kPrompt, 1), given = text;
  for (std::int64_t i = 0; i < kMore; ++i) {
    const std::vector<float> keep = {i == 0 ? 0.0F : 1.0F};
    const std::vector<float> got = next({{"tokens", given}, {"keep", keep}}).floats();
    const std::vector<float> want = whole({{"tokens", text}}).floats();
    const auto last = got.end() - kSymbols;
    for (std::int64_t k = 0; k < kSymbols; ++k)
      ASSERT_NEAR(*(last + k), *(want.end() - kSymbols + k), 1e-5) << i;
    given = {static_cast<std::int32_t>(std::max_element(last, got.end()) - last)};
    text.push_back(given[0]);
  }
}

TEST(LanguageModel, decays_only_embeddings_projections_and_convolutions) {
  const ParamGroup group = LanguageModel::no_weight_decay();
  EXPECT_EQ(group.weight_decay, 0);
  LanguageModelConfig config = mixed();
  config.tie_embeddings = false;
  std::set<std::string> decayed, others;  // last parts of the names
  for (const auto& [name, values] : whole_model(config, 1, 1).download_params()) {
    const std::size_t at = name.find(".mixer.");
    const std::string part = at == std::string::npos ? name : name.substr(at + 7);
    if (!part.ends_with("norm.weight")) {
      (group.params(name, values.shape) ? others : decayed).insert(part);
    } else {
      EXPECT_TRUE(group.params(name, values.shape)) << name;
    }
  }
  EXPECT_EQ(decayed,
            (std::set<std::string>{"backbone.embedding.weight", "lm_head.weight", "in_proj.weight",
                                   "out_proj.weight", "x_proj.weight", "dt_proj.weight",
                                   "conv1d.weight", "fc1.weight", "fc2.weight"}));
  EXPECT_EQ(others, (std::set<std::string>{"A_log", "A_bias", "D", "dt_bias", "dt_proj.bias",
                                           "conv1d.bias", "b_bias", "c_bias", "mimo_x", "mimo_z",
                                           "mimo_out", "backbone.norm_f.weight"}));
}

// With a large vocabulary, the logits are most of the memory of a step. The loss is the only
// output.
TEST(LanguageModel, training_keeps_logits_of_at_most_two_pieces) {
  constexpr std::int64_t kBatch = 2, kLength = 64, kVocab = 4096, kRows = 16;
  const LanguageModelConfig config{.vocab_size = kVocab, .d_model = 16, .n_layer = 1};
  const auto peak = [&](std::int64_t rows, bool trained) {
    const auto loss = [rows](const LanguageModel& net, const Inputs& in) {
      return net.loss(in["tokens"], in["next"], {.rows = rows});
    };
    const std::vector<InputSpec> inputs = {{"tokens", {kBatch, kLength}, i32},
                                           {"next", {kBatch, kLength}, i32}};
    if (trained) {
      return compile(LanguageModel(config), loss,
                     {.inputs = inputs, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}})
          .report()
          .peak_bytes;
    }
    return compile_function(LanguageModel(config), loss,
                            {.inputs = inputs, .device = {.kind = "cpu"}})
        .report()
        .peak_bytes;
  };
  constexpr std::int64_t kLogits = kBatch * kLength * kVocab * 4;
  constexpr std::int64_t kParams = kVocab * 16 * 4;  // most of them
  for (const std::int64_t rows : {kBatch * kLength, kRows}) {
    const std::int64_t piece = rows * kVocab * 4;
    EXPECT_LT(peak(rows, false), piece + kParams + 500'000) << rows;
    EXPECT_LT(peak(rows, true), 2 * piece + 3 * kParams + 1'000'000) << rows;
  }
  EXPECT_GT(peak(kBatch * kLength, true), kLogits);
}

TEST(LanguageModel, inputs_that_do_not_fit_are_rejected) {
  EXPECT_THROW(LanguageModel({.vocab_size = 3, .d_model = 4}), UserError);
  EXPECT_THROW(
      LanguageModel({.vocab_size = 3, .d_model = 4, .n_layer = 2, .layers = {MixerKind::kMlp}}),
      UserError);
  EXPECT_THROW(nn::mixer_schedule("gpt", 2), UserError);
  const auto message = [](const LanguageModelConfig& config) {
    return test::message_of([&] { LanguageModel{config}; });
  };
  LanguageModelConfig gpt2 = nn::gpt2_config(3, 4, 1, 2, 8);
  EXPECT_EQ(message(gpt2), "no error");
  gpt2.attention.rope = true;
  EXPECT_EQ(message(gpt2),
            "LanguageModel: n_positions: learned positions cannot be combined with "
            "attention.rope; expected attention.rope = false");
  gpt2.n_positions = -1;
  EXPECT_EQ(message(gpt2), "LanguageModel: n_positions: expected 0 or more, got -1");
  EXPECT_THROW(nn::Mamba2(8, {.head_dim = 5}), ShapeError);
  EXPECT_THROW(nn::Mamba(8, {.d_conv = 1}), ShapeError);
  EXPECT_THROW(nn::Mamba2(8, {.d_conv = 1, .head_dim = 4}), ShapeError);
  EXPECT_THROW(nn::CausalAttention(8, 3, {}), ShapeError);
  EXPECT_THROW(nn::Mamba3(8, {.d_state = 5, .head_dim = 4}), ShapeError);
  EXPECT_EQ(nn::mixer_schedule("jamba", 4)[3], MixerKind::kAttention);
  EXPECT_EQ(nn::mixer_schedule("zamba", 6)[5], MixerKind::kAttention);
  EXPECT_EQ(nn::mixer_schedule("zamba", 6)[4], MixerKind::kMamba3);
}

TEST(MixerKind, names_are_read_as_they_are_written) {
  const char* const names[] = {"mamba1", "mamba2", "mamba3",       "attention",
                               "mlp",    "moe",    "mamba2_shared"};
  for (const char* name : names) {
    const std::optional<MixerKind> kind = nn::parse_mixer_kind(name);
    ASSERT_TRUE(kind) << name;
    EXPECT_EQ(nn::to_string(*kind), name);
    EXPECT_EQ(nn::mixer_schedule(name, 1).front(), *kind);
  }
  EXPECT_EQ(nn::to_string(MixerKind::kAttention), "attention");
  EXPECT_EQ(nn::to_string(MixerKind::kMamba2Shared), "mamba2_shared");
  EXPECT_FALSE(nn::parse_mixer_kind("lstm"));
  EXPECT_FALSE(nn::parse_mixer_kind("mamba2 "));
}

}  // namespace
}  // namespace tensorgrad::testing
