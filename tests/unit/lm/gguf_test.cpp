// SPDX-License-Identifier: MIT
// Models in GGUF files: quantized weights keep their integers, tokenizers keep their ids, and
// models that llama.cpp does not support are rejected. golden/gguf_golden_test.cpp compares with
// llama.cpp.
#include "tensorgrad/lm/gguf.h"

#include <gmock/gmock.h>

#include <cmath>

#include "support/message_of.h"
#include "tensorgrad/tensorgrad.h"
#include "unit/io/io_test_util.h"

namespace tensorgrad::testing {
namespace {

using lm::SavedModel;
using nn::MixerKind;
using nn::WeightFormat;

SavedModel some_model(const nn::LanguageModelConfig& config) {
  CompiledFunction forward = compile_function(
      nn::LanguageModel(config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {1, 4}, i32}}, .device = {.kind = "cpu"}, .seed = 3});
  return {config, forward.download_params()};
}

nn::LanguageModelConfig gpt_config(std::int64_t vocab_size = 40) {
  nn::LanguageModelConfig config{.vocab_size = vocab_size, .d_model = 32, .n_layer = 2};
  config.layers = {MixerKind::kAttention, MixerKind::kMlp};
  config.heads = 2;
  config.attention.max_length = 16;
  config.mlp_width = 48;  // not a multiple of 32
  return config;
}

nn::LanguageModelConfig mamba_config() {
  nn::LanguageModelConfig config{.vocab_size = 40, .d_model = 32, .n_layer = 1};
  config.layers = {MixerKind::kMamba1};
  return config;
}

SavedModel read_again(const SavedModel& model) {
  std::vector<std::byte> bytes;
  lm::save_gguf(bytes, model);
  return lm::load_gguf({bytes, "f.gguf"});
}

void expect_types(const GgufFile& file, const std::string& type) {
  for (const char* name : {"token_embd.weight", "blk.0.attn_q.weight", "blk.0.ffn_gate.weight"})
    EXPECT_EQ(file.tensors.at(name).dtype, type) << name;
  EXPECT_EQ(file.tensors.at("blk.0.attn_norm.weight").dtype, "F32");
}

TEST(LmGguf, quantized_weights_keep_their_integers) {
  const SavedModel model = some_model(gpt_config());
  for (const auto& [format, type] :
       {std::pair(WeightFormat::kInt8, "Q8_0"), std::pair(WeightFormat::kInt8PerTensor, "Q8_0"),
        std::pair(WeightFormat::kInt4, "Q4_0"), std::pair(WeightFormat::kF16, "F16"),
        std::pair(WeightFormat::kBf16, "BF16"), std::pair(WeightFormat::kF32, "F32")}) {
    SCOPED_TRACE(type);
    const SavedModel quantized = lm::quantize(model, format);
    expect_types(lm::gguf_file(quantized), type);
    const SavedModel again = read_again(quantized);
    EXPECT_EQ(again.config.weight_format, WeightFormat::kF32);
    const bool exact = !std::string_view(type).starts_with('Q');
    for (const auto& [name, tensor] : lm::quantize(quantized, WeightFormat::kF32).weights) {
      const std::vector<float> want = tensor.floats(), got = again.weights.at(name).floats();
      ASSERT_EQ(got.size(), want.size()) << name;
      for (std::size_t i = 0; i < want.size(); ++i) {
        // Only scales are rounded, to the 11 bits of f16.
        const float bound = exact ? 0 : std::abs(want[i]) * 0x1p-11F;
        ASSERT_NEAR(got[i], want[i], bound) << name << " " << i;
      }
    }
  }
}

TEST(LmGguf, rows_not_divisible_into_blocks_are_f32) {
  const GgufFile file = lm::gguf_file(lm::quantize(some_model(gpt_config()), WeightFormat::kInt8));
  EXPECT_EQ(file.tensors.at("blk.0.ffn_down.weight").dtype, "F32");
}

TEST(LmGguf, weights_with_scales_outside_f16_are_f32) {
  SavedModel model = some_model(gpt_config());
  std::vector<float> small = model.weights.at("backbone.embedding.weight").floats();
  for (float& value : small) value *= 1e-4F;
  model.weights["backbone.embedding.weight"] = HostTensor::from({40, 32}, small);
  const SavedModel quantized = lm::quantize(model, WeightFormat::kInt8);
  EXPECT_EQ(lm::gguf_file(quantized).tensors.at("token_embd.weight").dtype, "F32");
  EXPECT_EQ(
      read_again(quantized).weights.at("backbone.embedding.weight").bytes,
      lm::quantize(quantized, WeightFormat::kF32).weights.at("backbone.embedding.weight").bytes);
}

TEST(LmGguf, tokenizers_keep_their_ids) {
  const std::vector<std::string> specials = {"<|endoftext|>"};
  const std::vector<std::string_view> texts = {"to be or not to be, that is the question: 12345"};
  Tokenizer with_bos = Tokenizer::train(
      texts,
      {.vocab_size = 280, .pre_tokenization = PreTokenization::kQwen2, .special_tokens = specials});
  with_bos.set_eos("<|endoftext|>");
  for (const Tokenizer& tokenizer :
       {Tokenizer::bytes(specials), with_bos,
        Tokenizer::characters({"a", "b", " ", "\n", "\xC3\xA9"}, specials),
        Tokenizer::train(texts,
                         {.vocab_size = 270, .pre_tokenization = PreTokenization::kCl100k})}) {
    SCOPED_TRACE(tokenizer.kind());
    SavedModel model = some_model(gpt_config(tokenizer.vocab_size() + 3));
    model.tokenizer = tokenizer;
    model.eos_ids = {2, 1, 4};
    const SavedModel again = read_again(model);
    EXPECT_EQ(again.eos_ids, model.eos_ids);
    ASSERT_TRUE(again.tokenizer);
    EXPECT_EQ(again.tokenizer->vocab_size(), tokenizer.vocab_size());
    EXPECT_EQ(again.tokenizer->merges(), tokenizer.merges());
    for (const char* text : {"ab ba\nb", "b  \xC3\xA9 a", "a<|endoftext|>b", ""}) {
      const auto ids = tokenizer.encode(text);
      EXPECT_EQ(again.tokenizer->encode(text), ids) << text;
      EXPECT_EQ(again.tokenizer->decode(ids), tokenizer.decode(ids)) << text;
    }
  }
}

TEST(LmGguf, models_unknown_to_llama_cpp_are_rejected) {
  const auto error_of = [](const nn::LanguageModelConfig& config) {
    const SavedModel model = some_model(config);
    return test::message_of([&] { lm::gguf_file(model); });
  };
  nn::LanguageModelConfig config = gpt_config();
  EXPECT_EQ(error_of(config), "no error");
  config.mlp_bias = true;
  EXPECT_EQ(error_of(config),
            "gguf_file: models of Llama with biases of attention or MLPs are not supported");
  config = gpt_config();
  config.layers = {MixerKind::kMamba2, MixerKind::kMlp};
  EXPECT_EQ(error_of(config),
            "gguf_file: llama.cpp has no model with these layers and options; expected only Mamba, "
            "only Mamba-2, or attention and MLPs in turn as in Llama or GPT-2");
  config = mamba_config();
  config.mamba.discretization = Discretization::kZeroOrderHold;
  EXPECT_EQ(error_of(config), "gguf_file: llama.cpp has no Mamba layers with zero-order hold");
  config = mamba_config();
  config.mamba.bias = true;
  EXPECT_EQ(error_of(config), "gguf_file: llama.cpp has no biases of projections in Mamba layers");
  config = mamba_config();
  config.mamba.expand = 3;
  EXPECT_EQ(error_of(config), "gguf_file: llama.cpp has only Mamba layers that expand by 2, got 3");
  config = mamba_config();
  config.mamba.b_c_dt_norm = true;
  EXPECT_EQ(error_of(config),
            "gguf_file: llama.cpp has one epsilon for all norms of Falcon-Mamba; the norms of B, C "
            "and dt have another one");
  config = mamba_config();
  config.layers = {MixerKind::kMamba2};
  config.mamba2.dt_limit_max = 1;
  EXPECT_EQ(error_of(config), "gguf_file: llama.cpp has no limits of dt in Mamba-2 layers");
}

TEST(LmGguf, tokenizers_unknown_to_llama_cpp_are_rejected) {
  const auto error_of = [](const Tokenizer& tokenizer) {
    SavedModel model = some_model(gpt_config(tokenizer.vocab_size()));
    model.tokenizer = tokenizer;
    return test::message_of([&] { lm::gguf_file(model); });
  };
  const std::string end =
      "; llama.cpp has no such tokenizer (remove it from the model to write ids only)";
  const std::vector<std::string_view> texts = {"to be or not to be"};
  EXPECT_EQ(error_of(Tokenizer::train(
                texts, {.vocab_size = 260, .pre_tokenization = PreTokenization::kNone})),
            "gguf_file: the tokenizer cuts text into pieces by another rule" + end);
  EXPECT_EQ(error_of(Tokenizer::characters({"a", "\xE2\x96\x81"})),
            "gguf_file: the tokenizer has U+2581, which stands for a space" + end);
  Tokenizer spaced = Tokenizer::bytes();
  spaced.add_tokens({{.content = "<x>", .lstrip = true}});
  EXPECT_EQ(error_of(spaced),
            "gguf_file: the tokenizer has the added token \"<x>\", which takes the space beside it "
            "or is not found within words" +
                end);
}

// Returns the error of loading a model file that `change` has modified.
std::string error_with(const auto& change) {
  GgufFile file = lm::gguf_file(some_model(gpt_config()));
  change(file);
  std::vector<std::byte> bytes;
  write_gguf(bytes, file);
  return test::message_of([&] { lm::load_gguf({bytes, "f"}); });
}

TEST(LmGguf, files_of_other_models_are_rejected) {
  const auto with_key = [](const char* key, const GgufValue& value) {
    return error_with([&](GgufFile& file) { file.metadata[key] = value; });
  };
  EXPECT_EQ(with_key("general.architecture", std::string("rwkv7")),
            "f: general.architecture: expected llama, gpt2, mamba or mamba2, got \"rwkv7\"");
  EXPECT_EQ(with_key("llama.block_count", std::uint32_t{1'000'000}),
            "f: llama.block_count: expected an integer from 1 to 11, got 1000000");
  EXPECT_EQ(with_key("llama.rope.scaling.type", std::string("yarn")),
            "f: llama.rope.scaling.type: scaled rotary embeddings are not supported");
  EXPECT_EQ(with_key("llama.attention.sliding_window", std::uint32_t{4}),
            "f: llama.attention.sliding_window: is not supported, so the model might not be "
            "reproduced exactly");
  EXPECT_EQ(with_key("llama.attention.head_count", std::string("2")),
            "f: llama.attention.head_count: expected an integer from 1 to 1073741824, got a value "
            "of another type");
  EXPECT_EQ(with_key("tokenizer.ggml.model", std::string("bert")),
            "f: tokenizer.ggml.model: expected gpt2 or llama, got \"bert\"; import the model "
            "without its tokenizer");
  EXPECT_EQ(error_with([](GgufFile& file) { file.metadata.erase("llama.embedding_length"); }),
            "f: llama.embedding_length: is missing");
  EXPECT_EQ(error_with([](GgufFile& file) { file.tensors.erase("blk.0.ffn_up.weight"); }),
            "f: the tensor blk.0.ffn_up.weight is missing");
  EXPECT_EQ(error_with([](GgufFile& file) {
              file.tensors["rope_freqs.weight"] = {"F32", {1}, std::vector<std::byte>(4)};
            }),
            "f: tensor rope_freqs.weight: models of the architecture llama here have no such "
            "tensor");
  EXPECT_EQ(error_with([](GgufFile& file) {
              file.tensors["blk.0.attn_k.weight"] = {"F32", {1}, std::vector<std::byte>(4)};
            }),
            "f: tensor blk.0.attn_k.weight: expected 2 axes, got f32[1]");
  EXPECT_EQ(error_with([](GgufFile& file) {
              const float nan = NAN;
              std::memcpy(file.tensors["output_norm.weight"].data.data(), &nan, sizeof nan);
            }),
            "f: tensor output_norm.weight: element 0 is not finite");
}

}  // namespace
}  // namespace tensorgrad::testing
