// SPDX-License-Identifier: MIT
// Transfers between host and device. A training step of a language model uploads its tokens and
// downloads the loss, whatever the size of the vocabulary; logits and gradients stay on the device.
// Generation uploads each token once, whatever the length of the text, and downloads the logits of
// the last one. The memory of the device is the same after each token as after the first.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "metered_device.h"
#include "small_workloads.h"
#include "support/small_mamba.h"
#if defined(TENSORGRAD_IDLE_WEBGPU)
#include "idle_device.h"
#endif

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kBatch = 2, kLength = 16;
constexpr std::int64_t kLossBytes = 4, kTokenBytes = 2 * kBatch * kLength * 4;  // with targets

lm::TrainingOptions training_on(const std::shared_ptr<Device>& device, int accumulate) {
  return {.batch = kBatch,
          .length = kLength,
          .steps = 20,
          .accumulate = accumulate,
          .device = on(device)};
}

// Expects that three steps download only the loss of each batch.
void expect_loss_alone(const std::shared_ptr<Device>& plain, std::int64_t vocab, int accumulate) {
  SCOPED_TRACE(std::to_string(vocab) + " tokens, " + std::to_string(accumulate) + " batches");
  const auto device = std::make_shared<MeteredDevice>(plain);
  const nn::LanguageModelConfig config = small_mamba(
      vocab, {nn::MixerKind::kMamba1, nn::MixerKind::kAttention, nn::MixerKind::kMlp}, kLength);
  const TokenSequence text(random_tokens(200, vocab, 1));
  lm::LanguageTrainer trainer(config, text, text, training_on(device, accumulate));
  trainer.step();  // includes compilation and initial uploads
  device->downloaded = device->uploaded = 0;
  for (int i = 0; i < 3; ++i) trainer.step();
  EXPECT_EQ(device->downloaded, 3 * accumulate * kLossBytes);
  EXPECT_EQ(device->uploaded, 3 * accumulate * kTokenBytes);
  // A validation does not download logits either. It has one loss for each window.
  (void)trainer.validate();
  device->downloaded = device->uploaded = 0;
  (void)trainer.validate();
  constexpr std::int64_t kBatches = (199 + kBatch * kLength - 1) / (kBatch * kLength);
  EXPECT_EQ(device->downloaded, kBatches * kBatch * kLossBytes);
  EXPECT_EQ(device->uploaded, kBatches * kTokenBytes);
  EXPECT_GT(kBatch * kLength * vocab * 4, 1000 * kLossBytes) << "what logits would take";
}

void expect_loss_alone(const std::shared_ptr<Device>& device) {
  for (const std::int64_t vocab : {100, 5000}) {
    for (const int accumulate : {1, 3}) expect_loss_alone(device, vocab, accumulate);
  }
}

TEST(Traffic, of_a_training_step_is_its_tokens_and_the_loss_on_cpu) {
  expect_loss_alone(make_cpu_device({.threads = 1}));
}

lm::SavedModel model_to_write(std::int64_t vocab) {
  const nn::LanguageModelConfig config =
      small_mamba(vocab,
                  {nn::MixerKind::kMamba1, nn::MixerKind::kMamba2, nn::MixerKind::kMamba3,
                   nn::MixerKind::kAttention},
                  400);
  return {config,
          compile_function(
              nn::LanguageModel(config),
              [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
              {.inputs = {{"tokens", {1, 1}, i32}}, .device = {.kind = "cpu"}, .seed = 3})
              .download_params()};
}

// Each run uploads a token of both texts, whether each text continues ("keep"), and what to sample.
// If the device samples, up to kMaxSampled tokens of each text are downloaded, instead of logits.
// They stay on the device from step to step. A prompt is processed in one piece.
void expect_each_token_once(const std::shared_ptr<Device>& plain, bool device_samples) {
  constexpr std::int64_t kTexts = 2, kVocab = 50, kWritten = 20;
  const auto device = std::make_shared<MeteredDevice>(plain);
  lm::SavedModel model = model_to_write(kVocab);
  lm::Generator generator(lm::Decoder(model, {.batch = kTexts, .device = on(device)}),
                          Tokenizer::bytes());
  std::set<const Executable*> step;  // includes the program of one token
  for (const auto& [length, compiled] :
       {std::pair(16, false), std::pair(256, false), std::pair(16, true), std::pair(256, true)}) {
    SCOPED_TRACE(length);
    std::vector<std::vector<std::int32_t>> prompts;
    for (unsigned text = 0; text < kTexts; ++text)
      prompts.push_back(random_tokens(length, kVocab, text));
    device->uploaded = device->downloaded = device->runs = 0;
    device->ran.clear();
    const auto texts =
        generator.generate_from(prompts, {.max_tokens = kWritten, .ignore_eos = true});
    EXPECT_EQ(texts.at(1).tokens.size(), static_cast<std::size_t>(kWritten));
    // The last generated token is not fed back.
    EXPECT_EQ(device->runs, 1 + kWritten - 1);
    EXPECT_EQ(device->ran.size(), 2U) << "a program for the prompt, and one for a token";
    if (step.empty()) step = device->ran;
    EXPECT_TRUE(std::any_of(step.begin(), step.end(), [&](const Executable* each) {
      return device->ran.contains(each);
    })) << "a token's program is the same behind any prompt";
    const std::int64_t history = kTexts * lm::Decoder::kMaxSampled * 4;
    if (device_samples) {
      EXPECT_EQ(device->downloaded % history, 0);
      EXPECT_LE(device->downloaded, device->runs * history);
    } else {
      EXPECT_EQ(device->downloaded, device->runs * kTexts * kVocab * 4);
    }
    if (!compiled) continue;  // parameters are uploaded, too
    const std::int64_t numbers = 2 + std::tuple_size_v<decltype(lm::SampleInputs::controls)>;
    EXPECT_EQ(device->uploaded, kTexts * 4 * (length + kWritten - 1 + device->runs * numbers) +
                                    (device_samples ? 1 : device->runs) * history);
  }
}

TEST(Traffic, of_generation_is_each_token_once_and_the_logits_of_the_last_on_cpu) {
  expect_each_token_once(make_cpu_device({.threads = 1}), false);
}

// The first prompt consists of one piece of each size into which the later ones are cut.
void expect_constant_memory(const std::shared_ptr<Device>& plain) {
  constexpr std::int64_t kTexts = 2, kVocab = 50;
  const auto device = std::make_shared<MeteredDevice>(plain);
  const lm::SavedModel model = model_to_write(kVocab);
  {
    lm::Generator generator(lm::Decoder(model, {.batch = kTexts, .device = on(device)}),
                            Tokenizer::bytes());
    std::int64_t held = 0, buffers = 0;
    for (const int length : {64 + 16 + 4 + 1, 1, 7, 90, 200}) {
      SCOPED_TRACE(length);
      std::vector<std::vector<std::int32_t>> prompts;
      for (unsigned text = 0; text < kTexts; ++text)
        prompts.push_back(random_tokens(length, kVocab, text));
      (void)generator.generate_from(prompts, {.max_tokens = 20, .ignore_eos = true});
      if (held == 0) {
        held = device->bytes_held;
        buffers = device->allocated;
      }
      ASSERT_EQ(device->bytes_held, held);
      for (std::int32_t token = 0; token < 150; ++token) {
        (void)generator.decoder().step(std::vector<std::int32_t>(kTexts, token % kVocab));
        ASSERT_EQ(device->bytes_held, held) << token;
      }
    }
    EXPECT_GT(held, 0);
    EXPECT_EQ(device->most_held, held) << "nor is there more in between";
    EXPECT_EQ(device->allocated, buffers);
  }
  EXPECT_EQ(device->bytes_held, 0) << "the generator is gone";
}

TEST(Traffic, generation_holds_as_much_after_each_token_as_after_the_first_on_cpu) {
  expect_constant_memory(make_cpu_device({.threads = 1}));
}

#if defined(TENSORGRAD_IDLE_WEBGPU)
TEST(Traffic, of_a_training_step_is_its_tokens_and_the_loss_on_webgpu) {
  expect_loss_alone(idle_device());
}
TEST(Traffic, of_generation_is_each_token_once_and_the_logits_of_the_last_on_webgpu) {
  expect_each_token_once(idle_device(), true);
}
TEST(Traffic, generation_holds_as_much_after_each_token_as_after_the_first_on_webgpu) {
  expect_constant_memory(idle_device());
}
#endif

}  // namespace
}  // namespace tensorgrad::testing
