// SPDX-License-Identifier: MIT
// Embeddings of texts equal the mean or the last of the hidden states of each separate text.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/message_of.h"
#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kLetters = 11;
using EmbeddedTexts = std::vector<std::vector<std::int32_t>>;

EmbeddedTexts texts_of(const std::vector<std::int64_t>& lengths) {
  EmbeddedTexts texts;
  for (const std::int64_t length : lengths)
    texts.push_back(random_tokens(length, kLetters, static_cast<unsigned>(length)));
  return texts;
}

CompiledFunction hidden_of(const nn::LanguageModelConfig& config) {
  return compile_function(
      nn::LanguageModel(config),
      [](const nn::LanguageModel& net, const Inputs& in) {
        return std::map<std::string, Tensor>{{"hidden", net.hidden_states(in["tokens"])},
                                             {"logits", net(in["tokens"])}};
      },
      {.inputs = {{"tokens", {1, kDynamic}, i32}}, .device = {.kind = "cpu"}, .seed = 5});
}

void embeds(const nn::LanguageModelConfig& config, nn::Pooling pooling) {
  CompiledFunction hidden = hidden_of(config);
  const lm::SavedModel model{config, hidden.download_params(), {}};
  const EmbeddedTexts texts = texts_of({3, 20, 1, 16, 7});
  lm::Embedder embedder(model, {.pooling = pooling, .batch = 2, .device = {.kind = "cpu"}});
  const HostTensor rows = embedder.embed(texts);
  const auto width = static_cast<std::size_t>(config.d_model);
  ASSERT_EQ(rows.shape, (Shape{5, config.d_model}));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> states = hidden.run({{"tokens", texts[i]}}).at("hidden").floats();
    for (std::size_t k = 0; k < width; ++k) {
      double want = states[states.size() - width + k];
      if (pooling == nn::Pooling::kMean) {
        want = 0;
        for (std::size_t at = k; at < states.size(); at += width) want += states[at];
        want /= static_cast<double>(texts[i].size());
      }
      EXPECT_NEAR(rows.floats()[i * width + k], want, 1e-5) << "text " << i;
    }
  }
}

TEST(LmEmbedder, EmbedsEachTextAsByItself) {
  for (const nn::Pooling pooling : {nn::Pooling::kMean, nn::Pooling::kLast}) {
    embeds(mixed_mamba(kLetters, 24), pooling);
    embeds(nn::gpt2_config(kLetters, 12, 2, 2, 20), pooling);
  }
}

TEST(LmEmbedder, HiddenStatesMakeTheLogits) {
  nn::LanguageModelConfig config = nn::gpt2_config(kLetters, 12, 1, 2, 20);
  CompiledFunction hidden = hidden_of(config);
  const std::vector<float> table =
      hidden.download_params().at("backbone.embedding.weight").floats();
  const NamedTensors made = hidden.run({{"tokens", random_tokens(5, kLetters, 1)}});
  const std::vector<float> states = made.at("hidden").floats(), logits = made.at("logits").floats();
  for (std::size_t step = 0; step < 5; ++step) {
    for (std::size_t token = 0; token < kLetters; ++token) {
      double want = 0;
      for (std::size_t k = 0; k < 12; ++k) want += states[step * 12 + k] * table[token * 12 + k];
      EXPECT_NEAR(logits[step * kLetters + token], want, 1e-5);
    }
  }
}

TEST(LmEmbedder, OfATrainerUsesItsParameters) {
  auto trainer = compile(nn::LanguageModel(mixed_mamba(kLetters, 24)),
                         [](const nn::LanguageModel& net, const Inputs& in) {
                           return net.loss(in["tokens"], in["next"]);
                         },
                         {.inputs = {{"tokens", {1, 4}, i32}, {"next", {1, 4}, i32}},
                          .optimizer = optim::SGD{},
                          .device = {.kind = "cpu"}});
  lm::Embedder attached(trainer);
  const EmbeddedTexts texts = texts_of({3, 5});
  const std::vector<float> before = attached.embed(texts).floats();
  trainer.step(
      {{"tokens", random_tokens(4, kLetters, 1)}, {"next", random_tokens(4, kLetters, 2)}});
  const std::vector<float> after = attached.embed(texts).floats();
  EXPECT_NE(before, after);
  lm::Embedder loaded({trainer.model().config, trainer.download_params(), {}},
                      {.device = {.kind = "cpu"}});
  EXPECT_EQ(loaded.embed(texts).floats(), after);
}

TEST(LmEmbedder, RefusesTextsThatDoNotFit) {
  const nn::LanguageModelConfig config = nn::gpt2_config(kLetters, 12, 1, 2, 20);
  lm::Embedder embedder({config, hidden_of(config).download_params(), {}},
                        {.device = {.kind = "cpu"}});
  const auto message = [&](const EmbeddedTexts& texts) {
    return test::message_of([&] { return embedder.embed(texts); });
  };
  EXPECT_EQ(message({}), "embed: expected at least 1 text, got none");
  EXPECT_EQ(message({{1}, {}}), "embed: text 1: expected at least 1 token, got none");
  EXPECT_EQ(message(texts_of({21})),
            "embed: text 0: expected at most 20 tokens, the context of the model, got 21");
}

}  // namespace
}  // namespace tensorgrad::testing
