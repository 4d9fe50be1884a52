// SPDX-License-Identifier: MIT
// Compares the logits of transformers and mamba-ssm checkpoints (make_pretrained_fixtures.py): of
// whole sequences, of a piece followed by single steps, and after saving in our own format.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "golden/fixture.h"
#include "support/file_pairs.h"
#include "support/message_of.h"
#include "support/source_path.h"
#include "support/temp_dir.h"

namespace tensorgrad::testing {
namespace {

namespace fs = std::filesystem;

std::string pretrained_path(const std::string& name) {
  return test::source_path("tests/golden/pretrained/" + name);
}

// Compares `logits` [B, L, V] with those of steps `begin` to `begin + L`. The tolerance is 1e-5 of
// the largest, which is also the error of transformers in float32 compared with double precision.
void expect_steps(const Fixture& want, const HostTensor& logits, std::int64_t begin) {
  const Shape whole = want.shape("logits");
  const std::vector<float> all = want.values<float>("logits"), got = logits.floats();
  const std::int64_t length = logits.shape.at(1), width = logits.shape.at(2);
  ASSERT_EQ(logits.shape, (Shape{whole[0], length, whole[2]}));
  double largest = 0;
  for (const float each : all) largest = std::max<double>(largest, std::abs(each));
  for (std::int64_t b = 0; b < whole[0]; ++b) {
    for (std::int64_t i = 0; i < length * width; ++i) {
      const auto at = static_cast<std::size_t>((b * whole[1] + begin) * width + i);
      const auto given = static_cast<std::size_t>(b * length * width + i);
      ASSERT_NEAR(got[given], all[at], 1e-5 * largest)
          << "sequence " << b << ", from " << begin << ": " << i;
    }
  }
}

std::vector<std::int32_t> columns(const std::vector<std::int32_t>& tokens, std::int64_t batch,
                                  std::int64_t begin, std::int64_t count) {
  const std::int64_t length = static_cast<std::int64_t>(tokens.size()) / batch;
  std::vector<std::int32_t> part;
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto from = tokens.begin() + b * length + begin;
    part.insert(part.end(), from, from + count);
  }
  return part;
}

void check_logits(const lm::SavedModel& model, const std::string& name, const std::string& device) {
  const Fixture want("pretrained/" + name + "/expected.safetensors");
  const auto tokens = want.values<std::int32_t>("tokens");
  const std::int64_t batch = want.shape("tokens")[0], length = want.shape("tokens")[1];
  const DeviceOptions where{.kind = device, .allow_software = true};
  auto whole = compile_function(
      nn::LanguageModel(model.config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {batch, length}, i32}}, .device = where});
  whole.upload_params(model.weights);
  expect_steps(want, whole({{"tokens", tokens}}), 0);
  if (device != "cpu") return;  // a software GPU takes seconds to compile another program

  auto pieces = compile_function(
      nn::LanguageModel(model.config),
      [](const nn::LanguageModel& net, const Inputs& in) {
        return net.resume(in["tokens"], in["keep"]);
      },
      {.inputs = {{"tokens", {batch, kDynamic}, i32}, {"keep", {batch}}}, .device = where});
  pieces.upload_params(model.weights);
  for (std::int64_t at = 0; at < length;) {
    const std::int64_t count = at == 0 ? 9 : 1;
    const std::vector<float> keep(static_cast<std::size_t>(batch), at == 0 ? 0.0F : 1.0F);
    expect_steps(want, pieces({{"tokens", columns(tokens, batch, at, count)}, {"keep", keep}}), at);
    at += count;
  }
}

// Checks the logits, the configuration, and a file in our own format.
void check_pretrained(const std::string& name, const std::string& device) {
  const lm::SavedModel model = lm::load_pretrained(pretrained_path(name));
  check_logits(model, name, device);
  const test::TempDir folder;
  const std::string path = folder / "model.safetensors";
  lm::save_model(path, model);
  const lm::SavedModel again = lm::load_model(path);
  EXPECT_EQ(lm::to_json(again.config), lm::to_json(model.config));
  for (const auto& [tensor, values] : model.weights)
    EXPECT_EQ(again.weights.at(tensor).bytes, values.bytes) << tensor;
}

// Reads the files of a folder into memory.
std::map<std::string, std::vector<std::byte>> files_of(const fs::path& folder) {
  std::map<std::string, std::vector<std::byte>> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

std::string weights_or_error(const FolderSource& folder) {
  try {
    const lm::SavedModel model = lm::load_pretrained(folder);
    std::string all = lm::to_json(model.config);
    for (const auto& [name, tensor] : model.weights)
      all += name + test::bits_of_range(tensor.bytes);
    return all + (model.tokenizer ? model.tokenizer->to_json() : "");
  } catch (const UserError& error) {
    return error.message();
  }
}

// A copy of a fixture that a test damages.
class SpoiltFolder {
 public:
  explicit SpoiltFolder(const std::string& name) { fs::copy(pretrained_path(name), folder_.str()); }
  [[nodiscard]] fs::path file(const std::string& name) const { return folder_ / name; }
  void replace(const std::string& name, const std::string& old, const std::string& put) const {
    std::string text = read_text_file(file(name).string());
    const std::size_t at = text.find(old);
    ASSERT_NE(at, std::string::npos) << old;
    std::ofstream(file(name), std::ios::binary) << text.replace(at, old.size(), put);
  }
  // Returns the message of the error without the folder's name.
  [[nodiscard]] std::string failure() const {
    try {
      (void)lm::load_pretrained(folder_.str());
    } catch (const UserError& error) {
      EXPECT_EQ(error.message().find(folder_.str()), 0U) << error.message();
      return error.message().substr(folder_.str().size());
    }
    return "nothing was thrown";
  }

 private:
  test::TempDir folder_;
};

// Renames the tensors of a file.
template <class Rename>
void rename_tensors(const std::string& path, const Rename& rename) {
  StoredFile file = read_safetensors(path), renamed;
  renamed.metadata = file.metadata;
  for (auto& [name, tensor] : file.tensors) renamed.tensors[rename(name)] = std::move(tensor);
  write_safetensors(path, renamed);
}

TEST(Pretrained, folders_in_memory_are_read_as_those_on_disk) {
  for (const char* name : {"mamba", "mamba2", "ssm_mamba2"}) {
    const test::TempDir disk;
    fs::copy(pretrained_path(name), disk.str());
    fs::copy(test::source_path("tests/unit/text/fixtures/gpt2.json"), disk / "tokenizer.json");
    const auto files = files_of(disk.str());
    const std::string whole = weights_or_error(disk.str());
    EXPECT_GT(whole.size(), 10'000U) << whole;
    EXPECT_EQ(weights_or_error({files, disk.str()}), whole);
    for (const auto& [file, bytes] : files) {
      auto spoilt = files;
      spoilt[file].resize(bytes.size() / 2);
      write_file_atomically(disk / file, spoilt[file]);
      EXPECT_EQ(weights_or_error({spoilt, disk.str()}), weights_or_error(disk.str())) << file;
      fs::remove(disk / file);
      spoilt.erase(file);
      EXPECT_EQ(weights_or_error({spoilt, disk.str()}), weights_or_error(disk.str())) << file;
      write_file_atomically(disk / file, bytes);
    }
  }
}

TEST(Pretrained, mamba_matches_logits_of_transformers) { check_pretrained("mamba", "cpu"); }
// Biases except in the convolution, three taps, its own rank of dt, an untied head, BF16.
TEST(Pretrained, odd_mamba_matches_logits_of_transformers) { check_pretrained("mamba_odd", "cpu"); }
// Two groups, two shards, F16.
TEST(Pretrained, mamba2_matches_logits_of_transformers) { check_pretrained("mamba2", "cpu"); }
// Biases, limits of dt, three groups with an odd width.
TEST(Pretrained, odd_mamba2_matches_logits_of_transformers) {
  check_pretrained("mamba2_odd", "cpu");
}
// Grouped key-value heads, two end-of-text ids.
TEST(Pretrained, LlamaHasLogitsOfTransformers) { check_pretrained("llama", "cpu"); }
// Shards, a tied head, BF16.
TEST(Pretrained, TiedLlamaHasLogitsOfTransformers) { check_pretrained("llama_tied", "cpu"); }

// RMS norms of B, C and dt with a large epsilon.
TEST(Pretrained, FalconMambaHasLogitsOfTransformers) { check_pretrained("falcon_mamba", "cpu"); }

TEST(Pretrained, LlamaWithBiasesHasLogitsOfTransformers) { check_pretrained("llama_bias", "cpu"); }

// Attention in one layer, groups of Mamba-2 and of key-value heads.
TEST(Pretrained, BambaHasLogitsOfTransformers) { check_pretrained("bamba", "cpu"); }
// Attention in the first and last layer, biases except in the convolution, limits of dt, shards in
// BF16.
TEST(Pretrained, OddBambaHasLogitsOfTransformers) { check_pretrained("bamba_odd", "cpu"); }
// Two of four experts in two layers, and attention in one of them.
TEST(Pretrained, JambaHasLogitsOfTransformers) { check_pretrained("jamba", "cpu"); }
TEST(Pretrained, JambaHasLogitsOfTransformersOnWebGpu) { check_pretrained("jamba", "webgpu"); }
// No experts, biases except in the convolution, its own rank of dt, a tied head, shards in F16.
TEST(Pretrained, OddJambaHasLogitsOfTransformers) { check_pretrained("jamba_odd", "cpu"); }

// One shared block in two layers, with adapters of attention, and groups of Mamba-2.
TEST(Pretrained, Zamba2HasLogitsOfTransformers) { check_pretrained("zamba2", "cpu"); }
TEST(Pretrained, Zamba2HasLogitsOfTransformersOnWebGpu) { check_pretrained("zamba2", "webgpu"); }
// Two shared blocks in four layers, adapters of MLPs only,
// biases, grouped key-value heads, a lower bound of dt, shards in BF16.
TEST(Pretrained, OddZamba2HasLogitsOfTransformers) { check_pretrained("zamba2_odd", "cpu"); }

TEST(Pretrained, Gpt2HasLogitsOfTransformers) { check_pretrained("gpt2", "cpu"); }
// An untied head, its own width of the MLP, all positions in use, shards in F16.
TEST(Pretrained, OddGpt2HasLogitsOfTransformers) { check_pretrained("gpt2_odd", "cpu"); }

// Like the published gpt2: without a prefix and with causal masks.
TEST(Pretrained, Gpt2WithoutPrefixIsABaseModel) {
  const SpoiltFolder folder("gpt2");
  const std::string path = folder.file("model.safetensors").string();
  rename_tensors(path, [](const std::string& name) { return name.substr(12); });
  StoredFile file = read_safetensors(path);
  for (const char* block : {"h.0", "h.1"}) {
    file.tensors[std::string(block) + ".attn.bias"] = {
        "F32", {1, 1, 32, 32}, std::vector<std::byte>(std::size_t{32} * 32 * 4)};
  }
  write_safetensors(path, file);
  check_logits(lm::load_pretrained(folder.file("").string()), "gpt2", "cpu");
}

TEST(Pretrained, LlamaWithoutPrefixIsABaseModel) {
  const SpoiltFolder folder("llama_tied");
  for (const auto& entry : fs::directory_iterator(folder.file(""))) {
    if (entry.path().extension() != ".safetensors" || entry.path().stem() == "expected") continue;
    rename_tensors(entry.path().string(), [](const std::string& name) { return name.substr(6); });
  }
  check_logits(lm::load_pretrained(folder.file("").string()), "llama_tied", "cpu");
}

TEST(Pretrained, ContextOfLlamaCanBeLimited) {
  EXPECT_EQ(lm::load_pretrained(pretrained_path("llama")).config.attention.max_length, 64);
  const nn::LanguageModelConfig config =
      lm::load_pretrained(pretrained_path("llama"), {.context = 16}).config;
  EXPECT_EQ(config.attention.max_length, 16);
}

// check_exports.py loads these folders with transformers.
TEST(Pretrained, WritesFoldersThatItReads) {
  for (const char* name : {"mamba", "mamba_odd", "mamba2", "mamba2_odd", "ssm_mamba2", "llama",
                           "llama_tied", "llama_bias", "gpt2", "gpt2_odd", "falcon_mamba", "bamba",
                           "bamba_odd", "jamba", "jamba_odd", "zamba2", "zamba2_odd"}) {
    SCOPED_TRACE(name);
    lm::SavedModel model = lm::load_pretrained(pretrained_path(name));
    Tokenizer tokenizer = Tokenizer::bytes({"<end>"});
    tokenizer.set_eos("<end>");
    model.tokenizer = tokenizer;
    const auto files = lm::pretrained_files(model);
    const lm::SavedModel again = lm::load_pretrained(files);
    EXPECT_EQ(again.eos_ids, model.eos_ids);
    EXPECT_EQ(again.tokenizer->eos_id(), 256);
    ASSERT_EQ(again.weights.size(), model.weights.size());
    for (const auto& [tensor, values] : model.weights)
      EXPECT_EQ(again.weights.at(tensor).bytes, values.bytes) << tensor;
    check_logits(again, name, "cpu");
    const test::TempDir folder;
    lm::save_pretrained(folder / "new", model);
    EXPECT_EQ(files_of(folder / "new"), files);
  }
}

TEST(Pretrained, RefusesToWriteWhatTransformersLacks) {
  const auto failure = [](const lm::SavedModel& model) {
    return test::message_of([&] { return lm::pretrained_files(model); });
  };
  lm::SavedModel model = lm::load_pretrained(pretrained_path("mamba"));
  model.config.mamba.discretization = Discretization::kZeroOrderHold;
  EXPECT_EQ(failure(model),
            "pretrained_files: transformers has no Mamba layers with zero-order hold");
  model = lm::load_pretrained(pretrained_path("mamba2"));
  model.config.mamba2.norm_epsilon = 0.5;
  EXPECT_EQ(failure(model),
            "pretrained_files: transformers has one epsilon for all norms of Mamba-2");
  model = lm::load_pretrained(pretrained_path("bamba"));
  model.config.mamba2.norm_epsilon = 0.5;
  EXPECT_EQ(failure(model),
            "pretrained_files: transformers has one epsilon for all norms of Bamba");
  model = lm::load_pretrained(pretrained_path("zamba2"));
  model.config.mamba2.norm_epsilon = 0.5;
  EXPECT_EQ(
      failure(model),
      "pretrained_files: transformers has an epsilon of 1e-5 in the Mamba-2 layers of Zamba2");
  model.config.mamba2.norm_epsilon = 1e-5;
  model.config.mamba2.dt_limit_max = 0.5;
  EXPECT_EQ(
      failure(model),
      "pretrained_files: transformers has no upper bound of dt in the Mamba-2 layers of Zamba2");
  model.config.mamba2.dt_limit_max = 0;
  model.weights["lm_head.weight"] = model.weights.at("backbone.embedding.weight");
  model.config.tie_embeddings = false;
  EXPECT_EQ(failure(model),
            "pretrained_files: transformers shares blocks of Zamba2 only if the output layer is "
            "tied to the embedding");
  model = lm::load_pretrained(pretrained_path("llama"));
  model.config.layer_options = {
      {.attention = nn::AttentionLayer{.heads = 3, .options = model.config.attention}}};
  EXPECT_THAT(failure(model),
              ::testing::StartsWith("pretrained_files: transformers has no model with these"));
  const auto random_jamba = [&](std::vector<nn::MixerKind> layers, std::int64_t expert_width) {
    nn::LanguageModelConfig config = lm::load_pretrained(pretrained_path("jamba")).config;
    config.n_layer = static_cast<std::int64_t>(layers.size());
    config.layers = std::move(layers);
    config.moe.width = expert_width;
    return lm::SavedModel{
        config, compile_function(nn::LanguageModel(config),
                                 [](const nn::LanguageModel& net, const Inputs& in) {
                                   return net(in["tokens"]);
                                 },
                                 {.inputs = {{"tokens", {1, 1}, i32}}, .device = {.kind = "cpu"}})
                    .download_params()};
  };
  using Kind = nn::MixerKind;
  EXPECT_EQ(failure(random_jamba({Kind::kAttention, Kind::kMlp, Kind::kAttention, Kind::kMoe,
                                  Kind::kMamba1, Kind::kMlp},
                                 12)),
            "pretrained_files: transformers has Jamba models only with a period of attention "
            "layers and one of mixtures of experts");
  EXPECT_EQ(failure(random_jamba({Kind::kAttention, Kind::kMlp, Kind::kMamba1, Kind::kMoe}, 13)),
            "pretrained_files: transformers has one width for all MLPs and experts");
  EXPECT_EQ(failure(random_jamba({Kind::kMamba1, Kind::kMlp}, 12)),
            "pretrained_files: transformers has no Bamba and Jamba models without attention "
            "layers");
  const nn::LanguageModelConfig gpt2 = lm::load_pretrained(pretrained_path("gpt2")).config;
  for (int i = 0; i < 4; ++i) {
    model.config = gpt2;
    if (i == 0) model.config.norm = nn::NormKind::kRmsNorm;
    if (i == 1) model.config.mlp = nn::MlpKind::kSwiGlu;
    if (i == 2) model.config.attention.bias = false;
    if (i == 3) model.config.attention.kv_heads = 1;
    model.weights =
        compile_function(
            nn::LanguageModel(model.config),
            [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
            {.inputs = {{"tokens", {1, 1}, i32}}, .device = {.kind = "cpu"}})
            .download_params();
    EXPECT_THAT(failure(model),
                ::testing::StartsWith("pretrained_files: transformers has no model with these"));
  }
}

TEST(Pretrained, checkpoints_of_mamba_ssm_have_the_same_logits) {
  check_pretrained("ssm_mamba", "cpu");
  check_pretrained("ssm_mamba2", "cpu");
}
TEST(Pretrained, mamba_matches_logits_of_transformers_on_webgpu) {
  check_pretrained("mamba", "webgpu");
}
TEST(Pretrained, mamba2_matches_logits_of_transformers_on_webgpu) {
  check_pretrained("mamba2_odd", "webgpu");
}

TEST(Pretrained, configurations_are_read) {
  const auto config_of = [](const char* name) {
    return lm::load_pretrained(pretrained_path(name)).config;
  };
  EXPECT_EQ(config_of("ssm_mamba").vocab_size, 24);  // 21, padded
  EXPECT_TRUE(config_of("ssm_mamba").tie_embeddings);
  EXPECT_EQ(config_of("ssm_mamba2").mamba2.groups, 2);
  EXPECT_EQ(config_of("mamba").mamba.discretization, Discretization::kEuler);
  EXPECT_EQ(config_of("mamba2").mamba2.dt_limit_max, 0);
  EXPECT_EQ(config_of("mamba2_odd").mamba2.dt_limit_max, 0.4);
  EXPECT_EQ(config_of("mamba_odd").norm_epsilon, 1e-3);
}

std::string failure_with(const std::string& fixture, const std::string& old, const std::string& put,
                         const std::string& file = "config.json") {
  const SpoiltFolder folder(fixture);
  folder.replace(file, old, put);
  return folder.failure();
}

TEST(Pretrained, unsupported_configurations_are_rejected) {
  EXPECT_EQ(
      failure_with("mamba", R"("model_type": "mamba")", R"("model_type": "zamba")"),
      R"(/config.json: model_type: expected mamba, falcon_mamba, mamba2, llama, mistral, gpt2, bamba, jamba or zamba2, got "zamba")");
  EXPECT_EQ(failure_with("gpt2", R"("activation_function": "gelu_new")",
                         R"("activation_function": "relu")"),
            R"(/config.json: activation_function: only "gelu_new" is supported, got "relu")");
  EXPECT_EQ(failure_with("gpt2", R"("scale_attn_by_inverse_layer_idx": false)",
                         R"("scale_attn_by_inverse_layer_idx": true)"),
            "/config.json: scale_attn_by_inverse_layer_idx: only false is supported, got true");
  EXPECT_EQ(failure_with("gpt2", R"("n_head": 3)", R"("n_head": 5)"),
            "/config.json: n_head: expected a divisor of n_embd");
  EXPECT_EQ(failure_with("gpt2", R"("n_layer": 2)", R"("n_layer": 3)"),
            ": the tensor transformer.h.2.ln_1.weight is missing");
  EXPECT_EQ(failure_with("gpt2", R"("n_positions": 32)", R"("n_positions": 31)"),
            ": backbone.position_embedding.weight: expected f32[31,24], got f32[32,24]");
  EXPECT_EQ(failure_with("llama", R"("attention_bias": false)", R"("attention_bias": true)"),
            ": the tensor model.layers.0.self_attn.q_proj.bias is missing");
  EXPECT_EQ(failure_with("llama", R"("rope_theta": 5000.0)",
                         R"("rope_theta": 5000.0, "partial_rotary_factor": 0.5)"),
            "/config.json: rope_parameters.partial_rotary_factor: only 1.0 is supported, got 0.5");
  EXPECT_EQ(
      failure_with("bamba", R"("partial_rotary_factor": 0.5)", R"("partial_rotary_factor": 0.25)"),
      "/config.json: rope_parameters.partial_rotary_factor: only 0.5 is supported, got 0.25");
  EXPECT_EQ(failure_with("bamba", R"("num_attention_heads": 2)", R"("num_attention_heads": 8)"),
            "/config.json: num_attention_heads: expected hidden_size / num_attention_heads to be a "
            "multiple of 4, because half of a head is rotated, got 2");
  EXPECT_EQ(failure_with("bamba", "\"attn_layer_indices\": [\n    1\n  ]",
                         R"("attn_layer_indices": [3])"),
            "/config.json: attn_layer_indices: expected a list of integers from 0 to 2, got [3]");
  EXPECT_EQ(failure_with("bamba", "\"attn_layer_indices\": [\n    1\n  ]",
                         R"("attn_layer_indices": [0])"),
            ": the tensor model.layers.0.self_attn.q_proj.weight is missing");
  EXPECT_EQ(failure_with("bamba", R"("mamba_n_heads": 4)", R"("mamba_n_heads": 5)"),
            "/config.json: mamba_n_heads: expected mamba_expand * hidden_size / mamba_d_head, got "
            "5");
  EXPECT_EQ(failure_with("jamba", R"("attn_layer_offset": 1)", R"("attn_layer_offset": 3)"),
            "/config.json: attn_layer_offset: expected a number below attn_layer_period 3, got 3");
  EXPECT_EQ(failure_with("jamba", R"("num_experts_per_tok": 2)", R"("num_experts_per_tok": 5)"),
            "/config.json: num_experts_per_tok: expected at most num_experts 4, got 5");
  EXPECT_EQ(failure_with("jamba", R"("num_experts": 4)", R"("num_experts": 1000000000)"),
            "/config.json: num_experts: expected an integer from 1 to 65536, got 1000000000");
  EXPECT_EQ(failure_with("jamba", R"("num_experts": 4)", R"("num_experts": 5)"),
            ": the tensor model.layers.1.feed_forward.experts.4.gate_proj.weight is missing");
  EXPECT_EQ(failure_with("jamba", R"("intermediate_size": 12)", R"("intermediate_size": 13)"),
            ": model.layers.0.feed_forward.gate_proj.weight: expected f32[13,16], got f32[12,16]");
  EXPECT_EQ(
      failure_with("llama", R"("rope_type": "default")", R"("rope_type": "llama3")"),
      R"(/config.json: rope_parameters.rope_type: only "default" is supported, got "llama3")");
  EXPECT_EQ(failure_with("llama", R"("head_dim": 8)", R"("head_dim": 16)"),
            "/config.json: head_dim: expected hidden_size / num_attention_heads");
  EXPECT_EQ(failure_with("llama", R"("num_hidden_layers": 2)", R"("num_hidden_layers": 3)"),
            ": the tensor model.layers.2.input_layernorm.weight is missing");
  EXPECT_EQ(failure_with("llama", R"("intermediate_size": 40)", R"("intermediate_size": 41)"),
            ": model.layers.0.mlp.gate_proj.weight: expected f32[41,24], got f32[40,24]");
  EXPECT_EQ(failure_with("mamba", R"("hidden_act": "silu")", R"("hidden_act": "gelu")"),
            R"(/config.json: hidden_act: only "silu" is supported, got "gelu")");
  EXPECT_EQ(failure_with("mamba2", R"("num_heads": 4)", R"("num_heads": 5)"),
            "/config.json: num_heads: expected expand * hidden_size / head_dim, got 5");
  EXPECT_EQ(failure_with("mamba2", R"("num_heads": 4)", R"("num_heads": 4.5)"),
            "/config.json: num_heads: expected an integer from 1 to 1073741824, got 4.5");
  for (const char* kind : {"mamba", "mamba2"}) {
    EXPECT_EQ(failure_with(kind, R"("conv_kernel": 4)", R"("conv_kernel": 1)"),
              "/config.json: conv_kernel: expected an integer from 2 to 1073741824, got 1");
  }
  EXPECT_EQ(failure_with("ssm_mamba2", R"("ngroups")", R"("d_conv": 1, "ngroups")"),
            "/config.json: ssm_cfg.d_conv: expected an integer from 2 to 1073741824, got 1");
  EXPECT_EQ(failure_with("mamba2", R"("hidden_size": 16,)", ""),
            "/config.json: hidden_size: is missing");
  EXPECT_EQ(failure_with("ssm_mamba2", R"("attn_layer_idx": [])", R"("attn_layer_idx": [1])"),
            "/config.json: attn_layer_idx: only [] is supported, got [1]");
  EXPECT_EQ(failure_with("ssm_mamba2", R"("ngroups")", R"("n_groups")"),
            "/config.json: ssm_cfg.n_groups: unknown field, so the model might not be reproduced "
            "exactly");
  EXPECT_EQ(failure_with("ssm_mamba2", R"("layer": "Mamba2")", R"("layer": "Mamba3")"),
            R"(/config.json: ssm_cfg.layer: expected Mamba1 or Mamba2, got "Mamba3")");
  EXPECT_EQ(failure_with("ssm_mamba", "{", "["), "/config.json: is not JSON at byte 13");
  EXPECT_EQ(failure_with("mamba2_odd", "0.4", "0.01"),
            "/config.json: time_step_limit: expected two numbers, the second above 0 and not below "
            "the first, got [0.05,0.01]");
  EXPECT_THAT(failure_with("mamba", "{", R"({"quantization_config": {"quant_method": "fp8"},)"),
              ::testing::StartsWith("/config.json: quantization_config: quantized weights"));
  EXPECT_EQ(failure_with("mamba", R"("vocab_size": 23)", R"("vocab_size": 24)"),
            ": backbone.embedding.weight: expected f32[24,16], got f32[23,16]");
  EXPECT_THAT(failure_with("mamba", R"("num_hidden_layers": 2)", R"("num_hidden_layers": 60000)"),
              ::testing::HasSubstr("has more parameters than the"));
}

TEST(Pretrained, UnsupportedConfigurationsOfZamba2AreRejected) {
  const auto with = [](const std::string& old, const std::string& put) {
    return failure_with("zamba2", old, put);
  };
  EXPECT_EQ(with(R"("hidden_act": "gelu")", R"("hidden_act": "silu")"),
            R"(/config.json: hidden_act: only "gelu" is supported, got "silu")");
  EXPECT_EQ(with(R"("use_long_context": false)", R"("use_long_context": true)"),
            "/config.json: use_long_context: only false is supported, got true");
  EXPECT_EQ(with(R"("use_conv_bias": true)", R"("use_conv_bias": false)"),
            "/config.json: use_conv_bias: only true is supported, got false");
  EXPECT_EQ(with(R"("use_conv_bias")", R"("time_step_limit": [0.1, 0.2], "use_conv_bias")"),
            "/config.json: time_step_limit: only null is supported, got [0.1,0.2]");
  EXPECT_EQ(with(R"("n_mamba_heads": 4)", R"("n_mamba_heads": 5)"),
            "/config.json: n_mamba_heads: expected a divisor of mamba_expand * hidden_size, got 5");
  EXPECT_EQ(with(R"("num_attention_heads": 2)", R"("num_attention_heads": 3)"),
            "/config.json: num_attention_heads: expected a divisor of 2 * hidden_size");
  EXPECT_EQ(with(R"("num_key_value_heads": 2)", R"("num_key_value_heads": 1)"),
            "/config.json: num_key_value_heads: expected num_attention_heads 2 with "
            "use_shared_attention_adapter, got 1");
  EXPECT_EQ(with(R"("rope_type": "default")", R"("rope_type": "yarn")"),
            R"(/config.json: rope_parameters.rope_type: only "default" is supported, got "yarn")");
  for (const char* kinds :
       {R"("layers_block_type": ["mamba"], "old": [)",
        R"("layers_block_type": ["mamba", "mamba", "mamba", "mamba"], "old": [)",
        R"("layers_block_type": ["mamba", "mamba", "hybrid", "moe"], "old": [)",
        R"("layers_block_type": "hybrid", "old": [)"}) {
    EXPECT_EQ(with(R"("layers_block_type": [)", kinds),
              "/config.json: layers_block_type: expected a list of \"mamba\" and \"hybrid\" for 4 "
              "layers, of which one or more are hybrid");
  }
  EXPECT_EQ(with(R"("adapter_rank": 3)", R"("adapter_rank": 4)"),
            ": backbone.layers.1.shared.q.down.weight: expected f32[4,32], got f32[3,32]");
  EXPECT_EQ(with(R"("num_mem_blocks": 1)", R"("num_mem_blocks": 2)"),
            ": the tensor model.layers.2.shared_transformer.feed_forward.gate_up_proj_adapter_list."
            "1.0.weight is missing");
}

// transformers may write the weights of a shared block in each layer that uses it.
TEST(Pretrained, CopiesOfSharedBlocksMustBeEqual) {
  const SpoiltFolder folder("zamba2");
  const std::string path = folder.file("model.safetensors").string();
  StoredFile file = read_safetensors(path);
  const std::string first = "model.layers.1.shared_transformer.";
  const std::string second = "model.layers.2.shared_transformer.";
  int copies = 0;
  for (const auto& [name, tensor] : StoredFile(file).tensors) {
    if (!name.starts_with(first)) continue;
    file.tensors[second + name.substr(first.size())] = tensor;
    // Some are only in the other layer.
    if (++copies % 2 == 0) file.tensors.erase(name);
  }
  EXPECT_GT(copies, 8);
  write_safetensors(path, file);
  check_logits(lm::load_pretrained(folder.file("").string()), "zamba2", "cpu");
  const std::string norm = "input_layernorm.weight";
  file.tensors[first + norm] = file.tensors.at(second + norm);
  file.tensors.at(second + norm).data[5] ^= std::byte{1};
  write_safetensors(path, file);
  EXPECT_EQ(folder.failure(), ": " + second + norm + " differs from " + first + norm +
                                  ", but the two layers share a block");
}

TEST(Pretrained, ContextOfZamba2CanBeLimited) {
  EXPECT_EQ(lm::max_context(lm::load_pretrained(pretrained_path("zamba2")).config), 32);
  EXPECT_EQ(lm::max_context(lm::load_pretrained(pretrained_path("zamba2"), {.context = 9}).config),
            9);
}

// Weights as written by MambaModel.save_pretrained().
TEST(Pretrained, BaseModelWithTiedHeadHasLogitsOfTransformers) {
  const SpoiltFolder folder("mamba");
  rename_tensors(folder.file("model.safetensors").string(), [](const std::string& name) {
    EXPECT_EQ(name.find("backbone."), 0U) << name;
    return name.substr(9);
  });
  check_logits(lm::load_pretrained(folder.file("").string()), "mamba", "cpu");
}

TEST(Pretrained, BaseModelWithoutHeadIsRefused) {
  const SpoiltFolder folder("mamba_odd");
  const std::string path = folder.file("model.safetensors").string();
  StoredFile file = read_safetensors(path);
  ASSERT_EQ(file.tensors.erase("lm_head.weight"), 1U);
  write_safetensors(path, file);
  rename_tensors(path, [](const std::string& name) { return name.substr(9); });
  EXPECT_EQ(folder.failure(),
            ": lm_head.weight is missing: the weights are those of a base model without an output "
            "layer, and config.json does not tie it to the embedding");
}

TEST(Pretrained, LimitsOfTheTimeStepMayBeEqual) {
  const SpoiltFolder folder("mamba2_odd");
  folder.replace("config.json", "0.4", "0.05");
  const nn::LanguageModelConfig config = lm::load_pretrained(folder.file("").string()).config;
  EXPECT_EQ(config.mamba2.dt_limit_min, 0.05);
  EXPECT_EQ(config.mamba2.dt_limit_max, 0.05);
}

TEST(Pretrained, IdsThatEndTextComeFromTheGenerationConfigThenTheConfig) {
  const SpoiltFolder folder("mamba");  // 23 tokens; config.json has 0
  const auto ids = [&] { return lm::load_pretrained(folder.file("").string()).eos_ids; };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(ids(), (Ids{0}));
  folder.replace("config.json", R"("eos_token_id": 0)", R"("eos_token_id": [4, 7, 50256])");
  EXPECT_EQ(ids(), (Ids{4, 7}));
  std::ofstream(folder.file("generation_config.json")) << R"({"eos_token_id": null})";
  EXPECT_EQ(ids(), (Ids{4, 7}));
  std::ofstream(folder.file("generation_config.json")) << R"({"eos_token_id": [2, 3]})";
  EXPECT_EQ(ids(), (Ids{2, 3}));
  std::ofstream(folder.file("generation_config.json")) << R"({"eos_token_id": 5})";
  EXPECT_EQ(ids(), (Ids{5}));
  std::ofstream(folder.file("generation_config.json")) << R"({"eos_token_id": ["</s>"]})";
  EXPECT_EQ(folder.failure(),
            "/generation_config.json: eos_token_id: expected an id or a list of ids");
}

TEST(Pretrained, RefusesWeightsThatAreNotFinite) {
  const SpoiltFolder folder("mamba");
  const std::string path = folder.file("model.safetensors").string();
  StoredFile file = read_safetensors(path);
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(&file.tensors.at("backbone.norm_f.weight").data[12], &bad, sizeof bad);
  write_safetensors(path, file);
  EXPECT_EQ(folder.failure(),
            ": backbone.norm_f.weight: element 3 is NaN; expected finite weights");
}

TEST(Pretrained, NamesTheTokenizerFileThatItCannotRead) {
  const SpoiltFolder folder("mamba");
  std::ofstream(folder.file("tekken.json")) << "{}";
  EXPECT_THAT(folder.failure(),
              ::testing::StartsWith("/tekken.json: this kind of tokenizer file is not "
                                    "supported; convert it with Python's transformers"));
  EXPECT_FALSE(lm::load_pretrained(folder.file("").string(), {.tokenizer = false}).tokenizer);
}

// Older versions of transformers wrote Infinity, which is not valid JSON.
TEST(Pretrained, takes_infinity_as_python_writes_it) {
  const SpoiltFolder folder("mamba2");
  const std::string text = read_text_file(folder.file("config.json").string());
  const std::size_t from = text.find('{', 2), to = text.find('}', from);
  folder.replace("config.json", text.substr(from, to + 1 - from), "Infinity");
  EXPECT_EQ(folder.failure(), "nothing was thrown");
}

TEST(Pretrained, errors_name_the_file) {
  EXPECT_EQ(failure_with("mamba2", "model-00002-of-00002", "model-00003-of-00002",
                         "model.safetensors.index.json")
                .substr(0, 34),
            "/model-00003-of-00002.safetensors:");
  EXPECT_THAT(
      failure_with("mamba2", "\"model-00002", "\"../model-00002", "model.safetensors.index.json"),
      ::testing::EndsWith("expected the name of a file in the same folder"));
  EXPECT_EQ(failure_with("mamba2", "weight_map", "weights", "model.safetensors.index.json"),
            "/model.safetensors.index.json: weight_map: expected an object of tensor names and "
            "files");
  const SpoiltFolder folder("mamba");
  fs::rename(folder.file("model.safetensors"), folder.file("pytorch_model.bin"));
  EXPECT_THAT(folder.failure(), ::testing::AllOf(::testing::StartsWith("/pytorch_model.bin: "),
                                                 ::testing::HasSubstr("save_file(")));
  fs::remove(folder.file("pytorch_model.bin"));
  EXPECT_EQ(folder.failure(),
            ": contains neither model.safetensors nor model.safetensors.index.json");
  fs::remove(folder.file("config.json"));
  EXPECT_EQ(folder.failure().substr(0, 13), "/config.json:");
  EXPECT_THROW((void)lm::load_pretrained(folder.file("none").string()), IoError);
  try {
    (void)lm::load_pretrained(pretrained_path("mamba/config.json"));
    ADD_FAILURE() << "no error";
  } catch (const IoError& error) {
    EXPECT_THAT(error.message(),
                ::testing::EndsWith("mamba/config.json: is a file; expected the folder that holds "
                                    "config.json and the weights"));
  }
}

TEST(Pretrained, a_tied_head_is_the_embedding) {
  const SpoiltFolder folder("ssm_mamba");
  const std::string path = folder.file("model.safetensors").string();
  StoredFile file = read_safetensors(path);
  file.tensors.at("lm_head.weight").data[5] ^= std::byte{1};
  write_safetensors(path, file);
  EXPECT_EQ(folder.failure(),
            ": lm_head.weight differs from the embedding, but config.json ties the two");
}

TEST(Pretrained, brings_the_tokenizer_along) {
  const SpoiltFolder folder("mamba");
  Tokenizer::characters({"a", "b"}).save(folder.file("tokenizer.json").string());
  const lm::SavedModel model = lm::load_pretrained(folder.file("").string());
  ASSERT_TRUE(model.tokenizer.has_value());
  EXPECT_EQ(model.tokenizer->encode("ba"), (std::vector<std::int32_t>{1, 0}));
  EXPECT_FALSE(
      lm::load_pretrained(folder.file("").string(), {.tokenizer = false}).tokenizer.has_value());
}

TEST(Pretrained, brings_a_tokenizer_of_sentencepiece_or_bert_along) {
  const std::string fixtures = test::source_path("tests/unit/text/fixtures/");
  const SpoiltFolder folder("llama");
  fs::copy(fixtures + "bert_vocab.txt", folder.file("vocab.txt"));
  EXPECT_EQ(lm::load_pretrained(folder.file("").string()).tokenizer.value().kind(), "WordPiece");
  fs::copy(fixtures + "piece_llama.model", folder.file("tokenizer.model"));
  std::ofstream(folder.file("tokenizer_config.json"))
      << R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true})";
  const lm::SavedModel model = lm::load_pretrained(folder.file("").string());
  ASSERT_TRUE(model.tokenizer.has_value());
  EXPECT_EQ(model.tokenizer->kind(), "character BPE");
  const std::vector<std::int32_t> ids = model.tokenizer->encode("Good sir");
  EXPECT_EQ(ids.front(), model.tokenizer->bos_id());
  EXPECT_EQ(model.tokenizer->decode(ids, {.skip_special_tokens = true}), "Good sir");
}

TEST(Pretrained, brings_a_tokenizer_of_vocab_and_merges_along) {
  const SpoiltFolder folder("mamba");
  std::ofstream(folder.file("vocab.json")) << R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})";
  std::ofstream(folder.file("merges.txt")) << "#version: 0.2\na b\n";
  const lm::SavedModel model = lm::load_pretrained(folder.file("").string());
  ASSERT_TRUE(model.tokenizer.has_value());
  EXPECT_EQ(model.tokenizer->encode("abb<|endoftext|>"), (std::vector<std::int32_t>{2, 1, 3}));
  EXPECT_EQ(model.tokenizer->eos_id(), 3);
}

}  // namespace
}  // namespace tensorgrad::testing
