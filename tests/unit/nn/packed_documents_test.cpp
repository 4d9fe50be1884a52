// SPDX-License-Identifier: MIT
// Packed documents in layers and language models: logits, losses and gradients of all parameters
// equal those of each document in its own row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using nn::LanguageModel;
using nn::LanguageModelConfig;
using nn::MixerKind;

constexpr std::int64_t kPackedLetters = 11, kPackedRows = 2, kPackedLength = 23;
// Chunks of ssd() have four steps, a convolution four taps. Each row has 23 steps.
const std::vector<std::vector<std::int64_t>> kDocumentSizes = {{1, 2, 1, 4, 9, 1, 5},
                                                               {8, 1, 1, 13}};

LanguageModelConfig packed_config(std::vector<MixerKind> layers) {
  return small_mamba(kPackedLetters, std::move(layers), kPackedLength);
}

std::vector<std::int64_t> all_sizes() {
  std::vector<std::int64_t> all;
  for (const auto& row : kDocumentSizes) all.insert(all.end(), row.begin(), row.end());
  return all;
}

std::map<std::string, Tensor> loss_and_gradients(const LanguageModel& net, const Tensor& logits,
                                                 const Tensor& loss) {
  std::map<std::string, Tensor> outputs = {{"logits", logits}, {"loss", loss}};
  std::vector<std::string> names;
  std::vector<Tensor> params;
  ParameterVisitor visitor([&](const std::string& path, const Parameter& parameter) {
    names.push_back("d " + path);
    params.push_back(parameter.tensor());
  });
  net.visit_fields(visitor);
  const std::vector<Tensor> grads = grad(loss, params);
  for (std::size_t i = 0; i < names.size(); ++i) outputs.emplace(names[i], grads[i]);
  return outputs;
}

const LinearCrossEntropyOptions kSummed = {.ignore_index = kIgnoreIndex,
                                           .reduction = Reduction::kSum};

CompiledFunction packed_function(const LanguageModelConfig& config, const std::string& device) {
  const Shape shape = {kPackedRows, kPackedLength};
  return compile_function(
      LanguageModel(config),
      [](const LanguageModel& net, const Inputs& in) {
        const Tensor tokens = in["tokens"], documents = in["documents"];
        return loss_and_gradients(net, net(tokens, documents),
                                  net.loss(tokens, in["next"], kSummed, documents));
      },
      {.inputs = {{"tokens", shape, i32}, {"next", shape, i32}, {"documents", shape, i32}},
       .device = {.kind = device, .allow_software = true},
       .seed = 5});
}

// Returns a function of documents in separate rows, padded with tokens that do not count.
CompiledFunction separate_function(const LanguageModelConfig& config) {
  const std::vector<std::int64_t> sizes = all_sizes();
  const Shape shape = {static_cast<std::int64_t>(sizes.size()),
                       *std::max_element(sizes.begin(), sizes.end())};
  return compile_function(LanguageModel(config),
                          [](const LanguageModel& net, const Inputs& in) {
                            return loss_and_gradients(net, net(in["tokens"]),
                                                      net.loss(in["tokens"], in["next"], kSummed));
                          },
                          {.inputs = {{"tokens", shape, i32}, {"next", shape, i32}},
                           .device = {.kind = "cpu"},
                           .seed = 5});
}

// Tokens of all documents, packed or in separate rows.
struct DocumentTexts {
  std::vector<std::int32_t> tokens, next, documents;
};

DocumentTexts packed_texts() {
  DocumentTexts texts = {random_tokens(kPackedRows * kPackedLength, kPackedLetters, 3),
                         random_tokens(kPackedRows * kPackedLength, kPackedLetters, 4),
                         {}};
  for (const auto& row : kDocumentSizes) {
    // The numbers of documents alternate between 0 and 7.
    for (std::size_t i = 0; i < row.size(); ++i)
      texts.documents.insert(texts.documents.end(), static_cast<std::size_t>(row[i]),
                             i % 2 == 0 ? 0 : 7);
  }
  return texts;
}

DocumentTexts separate_texts(const DocumentTexts& packed) {
  const std::vector<std::int64_t> sizes = all_sizes();
  const auto longest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  DocumentTexts texts;
  std::size_t at = 0;
  for (const std::int64_t given : sizes) {
    const auto size = static_cast<std::size_t>(given);
    for (std::size_t i = 0; i < longest; ++i) {
      texts.tokens.push_back(i < size ? packed.tokens[at + i] : 1);
      texts.next.push_back(i < size ? packed.next[at + i] : kIgnoreIndex);
    }
    at += size;
  }
  return texts;
}

std::vector<float> logits_of_documents(const std::vector<float>& separate) {
  const std::vector<std::int64_t> sizes = all_sizes();
  const std::int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<float> logits;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto from = separate.begin() + static_cast<std::ptrdiff_t>(i) * longest * kPackedLetters;
    logits.insert(logits.end(), from, from + sizes[i] * kPackedLetters);
  }
  return logits;
}

void expect_same(const std::vector<float>& got, const std::vector<float>& want, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0;
  for (const float each : want) largest = std::max(largest, std::abs(static_cast<double>(each)));
  ASSERT_GT(largest, 0) << what;
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * largest) << what << ", element " << i;
}

void check_packed_model(const LanguageModelConfig& config, const std::string& device) {
  CompiledFunction packed = packed_function(config, device), separate = separate_function(config);
  auto params = packed.download_params();
  std::mt19937 random(2);
  for (auto& [name, tensor] : params) {
    std::vector<float> values = tensor.floats();
    for (float& v : values) v += 0.1F * (static_cast<float>(random() % 2001) / 1000.0F - 1);
    tensor = HostTensor::from(tensor.shape, values);
  }
  packed.upload_params(params);
  separate.upload_params(params);
  const DocumentTexts together = packed_texts(), apart = separate_texts(together);
  const NamedTensors got = packed.run(
      {{"tokens", together.tokens}, {"next", together.next}, {"documents", together.documents}});
  const NamedTensors want = separate.run({{"tokens", apart.tokens}, {"next", apart.next}});
  const double tolerance = device == "cpu" ? 1e-5 : 3e-5;
  expect_same(got.at("logits").floats(), logits_of_documents(want.at("logits").floats()), tolerance,
              "logits");
  expect_same(got.at("loss").floats(), want.at("loss").floats(), tolerance, "loss");
  for (const auto& [name, tensor] : params)
    expect_same(got.at("d " + name).floats(), want.at("d " + name).floats(), 2 * tolerance, name);
}

void check_packed_kind(std::vector<MixerKind> layers, const std::string& device) {
  check_packed_model(packed_config(std::move(layers)), device);
}

TEST(PackedDocuments, Mamba1IsThatOfSeparateRowsOnCpu) {
  check_packed_kind({MixerKind::kMamba1, MixerKind::kMamba1}, "cpu");
  LanguageModelConfig held = packed_config({MixerKind::kMamba1});
  held.mamba.discretization = Discretization::kZeroOrderHold;
  check_packed_model(held, "cpu");
}
TEST(PackedDocuments, Mamba2IsThatOfSeparateRowsOnCpu) {
  check_packed_kind({MixerKind::kMamba2, MixerKind::kMamba2}, "cpu");
}
TEST(PackedDocuments, Mamba3IsThatOfSeparateRowsOnCpu) {
  check_packed_kind({MixerKind::kMamba3, MixerKind::kMamba3}, "cpu");
}
TEST(PackedDocuments, AttentionIsThatOfSeparateRowsOnCpu) {
  check_packed_kind({MixerKind::kAttention, MixerKind::kMlp, MixerKind::kAttention}, "cpu");
}
LanguageModelConfig packed_shared() {
  LanguageModelConfig config =
      packed_config({MixerKind::kMamba2Shared, MixerKind::kMamba2, MixerKind::kMamba2Shared});
  config.shared = {.heads = 2,
                   .attention = {.max_length = kPackedLength},
                   .mlp_width = 10,
                   .adapter_rank = 3,
                   .attention_adapters = true};
  return config;
}
TEST(PackedDocuments, SharedBlocksAreThoseOfSeparateRowsOnCpu) {
  check_packed_model(packed_shared(), "cpu");
}
TEST(PackedDocuments, Gpt2IsThatOfSeparateRowsOnCpu) {
  // The number of positions is the length of the longest document.
  check_packed_model(nn::gpt2_config(kPackedLetters, 12, 2, 2, 13), "cpu");
}
TEST(PackedDocuments, HybridsAreThoseOfSeparateRowsOnCpu) {
  check_packed_model(mixed_mamba(kPackedLetters, kPackedLength), "cpu");
}
TEST(PackedDocuments, HybridsAreThoseOfSeparateRowsOnWebGpu) {
  check_packed_model(mixed_mamba(kPackedLetters, kPackedLength), "webgpu");
}
TEST(PackedDocuments, Gpt2IsThatOfSeparateRowsOnWebGpu) {
  check_packed_model(nn::gpt2_config(kPackedLetters, 12, 2, 2, 13), "webgpu");
}

// If the embedding of one token is `value`, which is not finite, logits are NaN from this token to
// the end of its document. All others are unchanged.
void check_spoiled(const LanguageModelConfig& config, const std::string& device, float value) {
  CompiledFunction packed = packed_function(config, device);
  auto params = packed.download_params();
  DocumentTexts texts = packed_texts();
  for (std::int32_t& token : texts.tokens) token %= kPackedLetters - 1;
  const auto run = [&] {
    return packed
        .run({{"tokens", texts.tokens}, {"next", texts.next}, {"documents", texts.documents}})
        .at("logits")
        .floats();
  };
  const std::vector<float> want = run();
  HostTensor& table = params.at("backbone.embedding.weight");
  std::vector<float> weights = table.floats();
  std::fill(weights.end() - config.d_model, weights.end(), value);
  table = HostTensor::from(table.shape, weights);
  packed.upload_params(params);
  constexpr std::size_t kSpoiled = 10, kEnd = 17;  // in the document of steps 8 to 16
  texts.tokens[kSpoiled] = kPackedLetters - 1;
  const std::vector<float> got = run();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t step = i / kPackedLetters;
    if (step >= kSpoiled && step < kEnd) {
      EXPECT_TRUE(std::isnan(got[i])) << "step " << step;
    } else {
      EXPECT_NEAR(got[i], want[i], 1e-4) << "step " << step;
    }
  }
}
void check_spoiled_mixers(const std::string& device, float value) {
  for (const MixerKind kind :
       {MixerKind::kMamba1, MixerKind::kMamba2, MixerKind::kMamba3, MixerKind::kAttention}) {
    LanguageModelConfig config = packed_config({kind, MixerKind::kMlp, kind});
    config.tie_embeddings = false;
    check_spoiled(config, device, value);
  }
  LanguageModelConfig shared = packed_shared();
  shared.tie_embeddings = false;
  check_spoiled(shared, device, value);
}
TEST(PackedDocuments, NumbersThatAreNotFiniteStayInTheirDocumentOnCpu) {
  check_spoiled_mixers("cpu", std::numeric_limits<float>::quiet_NaN());
  check_spoiled_mixers("cpu", std::numeric_limits<float>::infinity());
}

// The longest document has one token more than there are positions.
TEST(PackedDocuments, LogitsBeyondTheLastPositionOfADocumentAreNan) {
  const LanguageModelConfig config = nn::gpt2_config(kPackedLetters, 12, 1, 2, 12);
  CompiledFunction packed = packed_function(config, "cpu");
  const DocumentTexts texts = packed_texts();
  const std::vector<float> logits =
      packed.run({{"tokens", texts.tokens}, {"next", texts.next}, {"documents", texts.documents}})
          .at("logits")
          .floats();
  for (std::size_t i = 0; i < logits.size(); ++i)
    EXPECT_EQ(std::isnan(logits[i]), i / kPackedLetters == kPackedRows * kPackedLength - 1) << i;
}

}  // namespace
}  // namespace tensorgrad::testing
