// SPDX-License-Identifier: MIT
// Training of language models: gradients of all parameters compared with differences, gradients
// between chunks of a text, and training on WebGPU compared with the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"
#include "unit/nn/differences.h"
#include "unit/nn/other_mamba.h"

namespace tensorgrad::testing {
namespace {

using nn::LanguageModel;
using nn::LanguageModelConfig;
using nn::MixerKind;

constexpr std::int64_t kLetters = 11;

LanguageModelConfig of_kinds(std::vector<MixerKind> layers) {
  return small_mamba(kLetters, std::move(layers), 24);
}

LanguageModelConfig of_all_kinds() { return mixed_mamba(kLetters, 24); }

std::vector<std::int32_t> letters(std::int64_t count, unsigned seed) {
  return random_tokens(count, kLetters, seed);
}

// Returns a loss, and its gradients by the names "d PARAMETER".
std::map<std::string, Tensor> with_gradients(const LanguageModel& net, const Tensor& loss) {
  std::vector<std::string> names;
  std::vector<Tensor> params;
  ParameterVisitor visitor([&](const std::string& path, const Parameter& parameter) {
    names.push_back(path);
    params.push_back(parameter.tensor());
  });
  net.visit_fields(visitor);
  std::map<std::string, Tensor> outputs = {{"loss", loss}};
  const std::vector<Tensor> grads = grad(loss, params);
  for (std::size_t i = 0; i < names.size(); ++i) outputs.emplace("d " + names[i], grads[i]);
  return outputs;
}

// Returns a function on the CPU that computes `loss` and its gradients for a batch of texts. "next"
// holds the next token of each of the "tokens".
template <class Loss>
CompiledFunction gradients_of(const LanguageModelConfig& config, std::int64_t batch,
                              std::int64_t length, const Loss& loss,
                              std::vector<InputSpec> more = {}) {
  more.push_back({"tokens", {batch, length}, i32});
  more.push_back({"next", {batch, length}, i32});
  return compile_function(LanguageModel(config),
                          [&](const LanguageModel& net, const Inputs& in) {
                            return with_gradients(net, loss(net, in));
                          },
                          {.inputs = more, .device = {.kind = "cpu"}, .seed = 5});
}

Tensor loss_of_whole(const LanguageModel& net, const Inputs& in) {
  return cross_entropy(net(in["tokens"]), in["next"]);
}

// Changes the parameters, because some initial values are equal for all elements. Larger values
// also make the loss less linear.
void move_off(std::map<std::string, HostTensor>& params, std::mt19937& random) {
  for (auto& [name, tensor] : params) {
    std::vector<float> values = tensor.floats();
    for (float& v : values) v += 0.1F * (static_cast<float>(random() % 2001) / 1000.0F - 1);
    tensor = HostTensor::from(tensor.shape, values);
  }
}

void check_gradients(const LanguageModelConfig& config) {
  constexpr std::int64_t kBatch = 2, kLength = 14;
  CompiledFunction forward = gradients_of(config, kBatch, kLength, loss_of_whole);
  auto params = forward.download_params();
  std::mt19937 random(2);
  move_off(params, random);
  forward.upload_params(params);
  const std::vector<std::int32_t> tokens = letters(kBatch * kLength, 3);
  const std::vector<std::int32_t> next = letters(kBatch * kLength, 4);
  const NamedTensors at = forward.run({{"tokens", tokens}, {"next", next}});
  DoubleLeaves leaves = {{"tokens", {tokens.begin(), tokens.end()}},
                         {"next", {next.begin(), next.end()}}};
  for (const auto& [name, tensor] : params) leaves[name] = as_doubles(tensor.floats());
  const LossInDouble loss(compile_function(
      LanguageModel(config), loss_of_whole,
      {.inputs = {{"tokens", {kBatch, kLength}, i32}, {"next", {kBatch, kLength}, i32}},
       .device = {.kind = "cpu"}}));
  EXPECT_NEAR(at.at("loss").floats()[0], loss(leaves), 1e-5);
  for (const auto& [name, tensor] : params)
    expect_gradient_of_differences(loss, leaves, name, at.at("d " + name).floats(), random);
}

TEST(LanguageModel, every_gradient_matches_differences_and_is_not_zero) {
  LanguageModelConfig config = of_all_kinds();
  config.tie_embeddings = false;
  check_gradients(config);
}

// A tied embedding receives the gradients of the input and of the output layer.
TEST(LanguageModel, gradients_of_a_tied_embedding_match_differences) {
  check_gradients(of_all_kinds());
}

TEST(LanguageModel, gradients_with_all_biases_and_the_zero_order_hold_match_differences) {
  LanguageModelConfig config = of_kinds({MixerKind::kMamba1, MixerKind::kMamba2});
  config.mamba.bias = config.mamba.x_bias = config.mamba2.bias = true;
  config.mamba.discretization = Discretization::kZeroOrderHold;
  check_gradients(config);
}

// Grouped heads in Mamba-2 and attention, bounds of dt, and a single rank.
TEST(LanguageModel, gradients_of_other_options_match_differences) {
  check_gradients(
      other_mamba(kLetters, {MixerKind::kMamba2, MixerKind::kAttention, MixerKind::kMamba3}, 24));
}

TEST(LanguageModel, gradients_with_norms_after_mamba3_match_differences) {
  for (const nn::OutNorm norm : {nn::OutNorm::kBeforeGate, nn::OutNorm::kAfterGate}) {
    LanguageModelConfig config = of_kinds({MixerKind::kMamba3});
    config.mamba3.out_norm = norm;
    check_gradients(config);
  }
}

// Weights of the norms of B, C and dt, partial rotary embeddings, and biases of the MLP.
TEST(LanguageModel, GradientsOfJambaAndBambaAreThoseOfDifferences) {
  LanguageModelConfig config =
      of_kinds({MixerKind::kMamba1, MixerKind::kMoe, MixerKind::kAttention, MixerKind::kMlp});
  config.mamba.b_c_dt_norm = config.mamba.b_c_dt_norm_weights = true;
  config.attention.rope_dims = 2;
  config.moe = {.experts = 3, .top_k = 2, .width = 7};
  config.mlp_bias = true;
  check_gradients(config);
}

// Two shared blocks in three layers, of which the first and the last use the same one.
TEST(LanguageModel, GradientsOfSharedBlocksAreThoseOfDifferences) {
  const MixerKind shared = MixerKind::kMamba2Shared;
  LanguageModelConfig config = of_kinds({shared, MixerKind::kMamba2, shared, shared});
  config.shared = {.blocks = 2,
                   .heads = 4,
                   .attention = {.kv_heads = 2, .max_length = 14},
                   .mlp_width = 10,
                   .mlp_bias = true,
                   .adapter_rank = 3,
                   .attention_adapters = true};
  check_gradients(config);
}

TEST(LanguageModel, GradientsOfGpt2AreThoseOfDifferences) {
  check_gradients(nn::gpt2_config(kLetters, 12, 2, 2, 14));
}

// ---- texts in two chunks ------------------------------------------------------------------------

constexpr std::int64_t kTexts = 2, kFirst = 9, kRest = 8;

// Returns the mean loss of both chunks. The second one starts with the states after the first. If
// `cut`, no gradient flows through these states.
Tensor loss_in_two(const LanguageModel& net, const Inputs& in, bool cut) {
  std::vector<std::vector<Tensor>> states;
  for (const nn::MixerBlock& block : net.backbone.layers) {
    states.emplace_back();
    for (const nn::StateSpec& part : block.state_specs(kTexts))
      states.back().push_back(full(part.shape, 0.0));
  }
  const auto piece = [&](std::int64_t from, std::int64_t count) {
    Tensor x = net.backbone.embedding(narrow(in["tokens"], 1, from, count));
    for (std::size_t i = 0; i < states.size(); ++i) {
      nn::RecurrentResult carried = net.backbone.layers[i].run(x, states[i]);
      x = carried.y;
      states[i] = std::move(carried.state);
      for (Tensor& state : states[i]) state = cut ? detach(state) : state;
    }
    const Tensor logits = net.backbone.embedding.times(net.backbone.norm_f(x));
    return cross_entropy(logits, narrow(in["next"], 1, from, count),
                         {.reduction = Reduction::kSum});
  };
  const Tensor first = piece(0, kFirst);
  return (first + piece(kFirst, kRest)) / static_cast<double>(kTexts * (kFirst + kRest));
}

// Returns the largest difference of two gradients, and the largest magnitude in the first.
std::pair<double, double> distance(const NamedTensors& one, const NamedTensors& two,
                                   const std::string& name) {
  const std::vector<float> a = one.at(name).floats(), b = two.at(name).floats();
  double most = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max<double>(most, std::abs(a[i] - b[i]));
    size = std::max<double>(size, std::abs(a[i]));
  }
  return {most, size};
}

TEST(LanguageModel, gradients_of_two_pieces_match_the_truncated_whole) {
  constexpr std::int64_t kLength = kFirst + kRest;
  const LanguageModelConfig config = of_all_kinds();
  const std::vector<std::int32_t> tokens = letters(kTexts * kLength, 3);
  const std::vector<std::int32_t> next = letters(kTexts * kLength, 4);
  const Feed feed = {{"tokens", tokens}, {"next", next}};
  CompiledFunction whole = gradients_of(config, kTexts, kLength, loss_of_whole);
  const auto params = whole.download_params();
  const auto in_two = [&](bool cut) {
    CompiledFunction forward = gradients_of(
        config, kTexts, kLength,
        [&](const LanguageModel& net, const Inputs& in) { return loss_in_two(net, in, cut); });
    forward.upload_params(params);
    return forward.run(feed);
  };
  // resume() keeps the states between calls. No gradient flows from one call to the previous one.
  CompiledFunction pieces =
      gradients_of(config, kTexts, kDynamic,
                   [](const LanguageModel& net, const Inputs& in) {
                     return cross_entropy(net.resume(in["tokens"], in["keep"]), in["next"]);
                   },
                   {{"keep", {kTexts}}});
  pieces.upload_params(params);
  const auto piece = [&](std::int64_t from, std::int64_t count) {
    const auto part = [&](const std::vector<std::int32_t>& all) {
      std::vector<std::int32_t> some;
      for (std::int64_t b = 0; b < kTexts; ++b) {
        const auto begin = all.begin() + b * kLength + from;
        some.insert(some.end(), begin, begin + count);
      }
      return some;
    };
    return pieces.run({{"tokens", part(tokens)},
                       {"next", part(next)},
                       {"keep", std::vector<float>(kTexts, from == 0 ? 0.0F : 1.0F)}});
  };
  const NamedTensors want = whole.run(feed), joined = in_two(false), cut = in_two(true);
  const NamedTensors first = piece(0, kFirst), rest = piece(kFirst, kRest);
  bool lacks = false;
  for (const auto& [name, values] : want) {
    const auto [off, size] = distance(want, joined, name);
    EXPECT_LE(off, 1e-5 * size + 1e-7) << name;
    const auto [lost, of_cut] = distance(cut, want, name);
    lacks |= lost > 0.01 * of_cut;
    const std::vector<float> a = first.at(name).floats(), b = rest.at(name).floats();
    const std::vector<float> both = cut.at(name).floats();
    for (std::size_t i = 0; i < both.size(); ++i) {
      const double mean = (kFirst * a[i] + kRest * b[i]) / static_cast<double>(kLength);
      ASSERT_NEAR(mean, both[i], 1e-5 * of_cut + 1e-7) << name << ' ' << i;
    }
  }
  EXPECT_TRUE(lacks) << "something flows back over the cut";
}

// ---- on WebGPU ----------------------------------------------------------------------------------

void trains_as_on_the_cpu(const std::vector<MixerKind>& layers, bool tied) {
  LanguageModelConfig config = of_kinds(layers);
  config.tie_embeddings = tied;
  expect_trained_alike(trained(config, 4, {.kind = "webgpu", .allow_software = true}),
                       trained(config, 4, {.kind = "cpu"}));
}

// Software drivers are slow to compile kernels, so each kind of layer has its own test.
TEST(LanguageModel, trains_on_webgpu_as_on_the_cpu) {
  trains_as_on_the_cpu({MixerKind::kMamba1}, true);
}
TEST(LanguageModel, mamba2_trains_on_webgpu_as_on_the_cpu) {
  trains_as_on_the_cpu({MixerKind::kMamba2}, false);
}
TEST(LanguageModel, mamba3_trains_on_webgpu_as_on_the_cpu) {
  trains_as_on_the_cpu({MixerKind::kMamba3}, true);
}
TEST(LanguageModel, Gpt2TrainsOnWebGpuAsOnTheCpu) {
  const LanguageModelConfig config = nn::gpt2_config(kLetters, 12, 1, 2, 20);
  expect_trained_alike(trained(config, 4, {.kind = "webgpu", .allow_software = true}),
                       trained(config, 4, {.kind = "cpu"}));
}
TEST(LanguageModel, hybrid_trains_on_webgpu_as_on_the_cpu) {
  trains_as_on_the_cpu({MixerKind::kMamba1, MixerKind::kAttention, MixerKind::kMlp}, false);
}

}  // namespace
}  // namespace tensorgrad::testing
