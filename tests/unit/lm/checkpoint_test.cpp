// SPDX-License-Identifier: MIT
// Language models in files: round trips, and errors that name what is wrong.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "support/file_pairs.h"
#include "support/message_of.h"
#include "support/temp_dir.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using lm::SavedModel;
using nn::LanguageModelConfig;
using nn::MixerKind;

// Returns a configuration in which no option has its default value.
LanguageModelConfig unusual() {
  LanguageModelConfig config{.vocab_size = 9, .d_model = 12, .n_layer = 5};
  config.layers = {MixerKind::kMamba3, MixerKind::kMamba1, MixerKind::kMlp, MixerKind::kAttention,
                   MixerKind::kMamba2};
  config.mamba = {.d_state = 5,
                  .d_conv = 3,
                  .expand = 3,
                  .dt_rank = 2,
                  .bias = true,
                  .conv_bias = false,
                  .x_bias = true,
                  .discretization = Discretization::kZeroOrderHold,
                  .dt_min = 0.002,
                  .dt_max = 0.3,
                  .dt_floor = 0,
                  .b_c_dt_norm = true,
                  .norm_epsilon = 0.2};
  config.mamba2 = {.d_state = 6,
                   .d_conv = 2,
                   .expand = 4,
                   .head_dim = 8,
                   .groups = 2,
                   .chunk = 4,
                   .bias = true,
                   .conv_bias = false,
                   .a_min = 0.5,
                   .a_max = 3,
                   .dt_min = 0.1,
                   .dt_max = 0.7,
                   .dt_floor = 0.2,
                   .dt_limit_min = 0.01,
                   .dt_limit_max = 0.9,
                   .norm_epsilon = 0.1};
  config.mamba3 = {.d_state = 4,
                   .expand = 1,
                   .head_dim = 6,
                   .ranks = 3,
                   .chunk = 5,
                   .out_norm = nn::OutNorm::kAfterGate,
                   .a_min = 0.3,
                   .a_max = 2,
                   .dt_min = 0.01,
                   .dt_max = 0.2,
                   .dt_floor = 0.1,
                   .norm_epsilon = 0.01,
                   .decay = nn::DecayActivation::kHeavyTail,
                   .a_floor = 0.3};
  config.heads = 6;
  config.attention = {.kv_heads = 2, .rope_base = 500, .max_length = 31};
  config.mlp_width = 17;
  config.norm_epsilon = 0.001;
  config.tie_embeddings = false;
  config.weight_format = nn::WeightFormat::kBf16;
  return config;
}

std::map<std::string, HostTensor> some_weights(const LanguageModelConfig& config) {
  return compile_function(
             nn::LanguageModel(config),
             [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
             {.inputs = {{"tokens", {1, 1}, i32}}, .device = {.kind = "cpu"}, .seed = 3})
      .download_params();
}

TEST(LmConfig, round_trips_through_text) {
  const LanguageModelConfig config = unusual();
  const std::string json = lm::to_json(config);
  const LanguageModelConfig read = lm::config_from_json(json);
  EXPECT_EQ(read.n_layer, 5);
  EXPECT_EQ(read.layers, config.layers);
  EXPECT_EQ(read.mamba.discretization, Discretization::kZeroOrderHold);
  EXPECT_EQ(read.mamba.dt_min, 0.002);
  EXPECT_EQ(read.mamba3.ranks, 3);
  EXPECT_TRUE(read.mamba.b_c_dt_norm);
  EXPECT_EQ(read.mamba.norm_epsilon, 0.2);
  EXPECT_EQ(read.mamba3.decay, nn::DecayActivation::kHeavyTail);
  EXPECT_EQ(read.mamba3.a_floor, 0.3);
  EXPECT_EQ(read.mamba3.out_norm, nn::OutNorm::kAfterGate);
  EXPECT_EQ(read.attention.max_length, 31);
  EXPECT_FALSE(read.tie_embeddings);
  EXPECT_EQ(lm::to_json(read), json);
  // No option has its default value, so none can be equal by chance.
  const LanguageModelConfig usual{
      .vocab_size = 9, .d_model = 12, .n_layer = 5, .layers = config.layers};
  const auto others = nlohmann::json::parse(lm::to_json(usual)).flatten();
  std::set<std::string> same;
  const auto written = nlohmann::json::parse(json).flatten();
  for (const auto& [path, value] : written.items()) {
    // Some options are written only if they are not the default.
    if (others.contains(path) && others.at(path) == value)
      same.insert(path.substr(0, path.find('/', 1)));
  }
  EXPECT_THAT(same,
              ::testing::ElementsAre("/d_model", "/format", "/layers", "/version", "/vocab_size"));
}

TEST(LmConfig, writes_only_options_of_used_layers) {
  const LanguageModelConfig config{.vocab_size = 65, .d_model = 128, .n_layer = 2};
  const std::string json = lm::to_json(config);
  EXPECT_THAT(json, ::testing::HasSubstr(R"("layers":["mamba1","mamba1"])"));
  EXPECT_THAT(json, ::testing::Not(::testing::HasSubstr("head_dim")));
  EXPECT_EQ(lm::config_from_json(json).layers.size(), 2U);
}

// Older files do not have the field.
TEST(LmConfig, has_no_norm_after_mamba3_by_default) {
  std::string json = lm::to_json(unusual());
  const std::string norm = R"("out_norm":"after_gate",)";
  const std::size_t at = json.find(norm);
  ASSERT_NE(at, std::string::npos) << json;
  json.erase(at, norm.size());
  EXPECT_EQ(lm::config_from_json(json).mamba3.out_norm, nn::OutNorm::kNone);
  for (const nn::OutNorm each :
       {nn::OutNorm::kNone, nn::OutNorm::kBeforeGate, nn::OutNorm::kAfterGate}) {
    LanguageModelConfig config = unusual();
    config.mamba3.out_norm = each;
    EXPECT_EQ(lm::config_from_json(lm::to_json(config)).mamba3.out_norm, each);
  }
}

TEST(LmConfig, OptionsOfGpt2AreWrittenOnlyIfTheyAreUsed) {
  const LanguageModelConfig config = nn::gpt2_config(9, 12, 2, 3, 31);
  const std::string json = lm::to_json(config);
  const LanguageModelConfig read = lm::config_from_json(json);
  EXPECT_EQ(lm::to_json(read), json);
  EXPECT_EQ(read.norm, nn::NormKind::kLayerNorm);
  EXPECT_EQ(read.mlp, nn::MlpKind::kGelu);
  EXPECT_EQ(read.n_positions, 31);
  EXPECT_FALSE(read.attention.rope);
  EXPECT_TRUE(read.attention.bias);
  const std::string plain = lm::to_json(unusual());
  for (const char* key : {"\"norm\"", "n_positions", "\"rope\"", "\"kind\""}) {
    EXPECT_THAT(json, ::testing::HasSubstr(key));
    EXPECT_THAT(plain, ::testing::Not(::testing::HasSubstr(key)));
  }
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = json;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << json;
    text.replace(at, from.size(), to);
    return test::message_of([&] { (void)lm::config_from_json(text, "c"); });
  };
  EXPECT_EQ(changed("\"layer_norm\"", "\"batch_norm\""),
            "c: norm: expected rms_norm or layer_norm, got \"batch_norm\"");
  EXPECT_EQ(changed("\"gelu\"", "1"), "c: mlp.kind: expected swiglu or gelu, got 1");
  EXPECT_EQ(changed("\"n_positions\":31", "\"n_positions\":-1"),
            "c: n_positions: expected an integer from 0 to 1073741824, got -1");
}

TEST(LmConfig, OptionsOfSingleLayersAreReadAsTheyWereWritten) {
  LanguageModelConfig config{.vocab_size = 9, .d_model = 12, .n_layer = 8};
  config.layers = nn::mixer_schedule("mamba1 moe attention mlp", 8);
  config.mamba.b_c_dt_norm = config.mamba.b_c_dt_norm_weights = true;
  config.attention.rope = false;
  config.attention.rope_dims = 2;
  config.mlp_bias = true;
  config.moe = {.experts = 5, .top_k = 3, .width = 17};
  config.layer_options = {
      {.first = 0, .period = 4, .mamba = nn::MambaOptions{.d_state = 3}},
      {.first = 2, .attention = nn::AttentionLayer{.heads = 6, .options = {.kv_heads = 3}}},
      {.first = 3,
       .mlp = nn::MlpLayer{.kind = nn::MlpKind::kGelu, .width = 5},
       .moe = std::nullopt},
      {.first = 1, .period = 4, .moe = nn::MixtureOfExperts::Options{.experts = 2, .top_k = 1}}};
  const std::string json = lm::to_json(config);
  const LanguageModelConfig read = lm::config_from_json(json);
  EXPECT_EQ(lm::to_json(read), json);
  EXPECT_TRUE(read.mamba.b_c_dt_norm_weights);
  EXPECT_EQ(read.attention.rope_dims, 2);
  EXPECT_TRUE(read.mlp_bias);
  EXPECT_EQ(read.moe.width, 17);
  ASSERT_EQ(read.layer_options.size(), 4U);
  EXPECT_EQ(read.layer_options[0].period, 4);
  // These have the default value, which is not the value of the model.
  EXPECT_FALSE(read.layer_options[0].mamba->b_c_dt_norm_weights);
  EXPECT_TRUE(read.layer_options[1].attention->options.rope);
  EXPECT_EQ(read.layer_options[1].attention->heads, 6);
  EXPECT_FALSE(read.layer_options[2].mlp->bias);
  EXPECT_FALSE(read.layer_options[2].moe.has_value());
  EXPECT_EQ(read.layer_options[3].moe->experts, 2);
}

TEST(LmConfig, OptionsOfSingleLayersThatAreMissingAreThoseOfTheModel) {
  const LanguageModelConfig config = lm::config_from_json(
      R"({"d_model": 24, "layers": "mamba2 attention", "n_layer": 4,
          "attention": {"heads": 3, "rope": false},
          "layer_options": [{"first": 3, "attention": {"heads": 6}}]})",
      "a.json", true);
  EXPECT_EQ(config.vocab_size, 0);
  EXPECT_EQ(config.n_layer, 4);
  EXPECT_EQ(config.layers[3], MixerKind::kAttention);
  EXPECT_EQ(config.mamba2.d_state, 128);
  EXPECT_EQ(nn::layer_config(config, 1).heads, 3);
  EXPECT_EQ(nn::layer_config(config, 3).heads, 6);
  EXPECT_FALSE(nn::layer_config(config, 3).attention.rope);
  const auto failure = [](const std::string& json) {
    return test::message_of([&] { (void)lm::config_from_json(json, "a.json", true); });
  };
  EXPECT_EQ(failure(R"({"layers": ["mlp"], "layer_options": [{"mlp": {"width": -1}}]})"),
            "a.json: layer_options[0].mlp.width: expected an integer from 0 to 1073741824, got -1");
  EXPECT_EQ(failure(R"({"layers": ["mlp"], "layer_options": [{"last": 1}]})"),
            "a.json: layer_options[0].last: unknown field");
  EXPECT_EQ(failure(R"({"layers": ["mlp"], "layer_options": {}})"),
            "a.json: layer_options: expected a list of at most 1048576 objects for 1 layers");
  EXPECT_EQ(failure(R"({"layers": "mlp"})"), "a.json: n_layer: is missing");
  EXPECT_EQ(failure(R"({"layers": "mlp", "n_layer": 0})"),
            "a.json: n_layer: expected an integer from 1 to 65536, got 0");
  EXPECT_EQ(failure(R"({"layers": "rnn", "n_layer": 1})"),
            "a.json: layers: mixer_schedule: unknown schedule 'rnn'; expected jamba, zamba, or a "
            "list of mamba1, mamba2, mamba3, attention, mlp, moe and mamba2_shared");
  EXPECT_EQ(failure(R"({"layers": ["mlp"], "n_layer": 1})"), "a.json: n_layer: unknown field");
}

TEST(LmConfig, errors_name_the_field) {
  const std::string json = lm::to_json(unusual());
  const auto read_with = [&](const std::string& old, const std::string& put) {
    const std::size_t at = json.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    std::string changed = json;
    changed.replace(at, old.size(), put);
    return test::message_of([&] { (void)lm::config_from_json(changed, "a.json"); });
  };
  EXPECT_EQ(read_with("{\"format\"", "{format"), "a.json: the configuration is not JSON at byte 2");
  EXPECT_EQ(read_with("\"d_model\":12,", ""), "a.json: d_model: is missing");
  EXPECT_EQ(read_with("\"d_model\":12", "\"d_model\":1.5"),
            "a.json: d_model: expected an integer from 1 to 1073741824, got 1.5");
  EXPECT_EQ(read_with("\"d_model\":12", "\"d_model\":18446744073709551615"),
            "a.json: d_model: expected an integer from 1 to 1073741824, got 18446744073709551615");
  EXPECT_EQ(read_with("\"ranks\":3", "\"ranks\":0"),
            "a.json: mamba3.ranks: expected an integer from 1 to 1073741824, got 0");
  EXPECT_EQ(read_with("\"d_conv\":3", "\"d_conv\":1"),
            "a.json: mamba1.d_conv: expected an integer from 2 to 1073741824, got 1");
  EXPECT_EQ(read_with("\"d_conv\":2", "\"d_conv\":1"),
            "a.json: mamba2.d_conv: expected an integer from 2 to 1073741824, got 1");
  EXPECT_EQ(read_with("\"rope_base\":500.0", "\"rope_base\":-1"),
            "a.json: attention.rope_base: expected a number above 0, got -1");
  EXPECT_EQ(read_with("\"rope_base\":500.0", "\"rope_base\":\"big\""),
            "a.json: attention.rope_base: expected a number above 0, got \"big\"");
  EXPECT_EQ(read_with("\"mamba1\",\"mlp\"", "\"mamba1\",\"lstm\""),
            "a.json: layers[2]: expected mamba1, mamba2, mamba3, attention, mlp, moe or "
            "mamba2_shared, got "
            "\"lstm\"");
  EXPECT_EQ(read_with("zero_order_hold", "bilinear"),
            "a.json: mamba1.discretization: expected euler or zero_order_hold, got \"bilinear\"");
  EXPECT_EQ(read_with("\"after_gate\"", "\"everywhere\""),
            "a.json: mamba3.out_norm: expected none, before_gate or after_gate, got "
            "\"everywhere\"");
  EXPECT_EQ(read_with("\"conv_bias\":false", "\"conv_bias\":0"),
            "a.json: mamba1.conv_bias: expected true or false, got 0");
  EXPECT_EQ(read_with("\"heads\":6", "\"heads\":6,\"dropout\":0"),
            "a.json: attention.dropout: unknown field");
  EXPECT_EQ(read_with("\"mlp\":{\"width\":17}", "\"mlp\":17"), "a.json: mlp: expected an object");
  EXPECT_EQ(read_with("\"version\":1", "\"version\":2"),
            "a.json: version: expected 1, got 2; the file was written by a newer tensorgrad");
  EXPECT_EQ(read_with("\"rope_base\":500.0", "\"rope_base\":5e500"),
            "a.json: the configuration has a number that is too large");
  EXPECT_EQ(read_with("\"heads\":6", "\"heads\":" + std::string(200'000, '[')),
            "a.json: the configuration is nested too deeply");
  EXPECT_EQ(read_with("tensorgrad LanguageModel", "GPT"),
            "a.json: format: expected \"tensorgrad LanguageModel\", got \"GPT\"");
}

TEST(LmCheckpoint, round_trips_weights_configuration_and_tokenizer) {
  const test::TempDir folder;
  const std::string path = folder / "model.safetensors";
  LanguageModelConfig config = unusual();
  config.weight_format = nn::WeightFormat::kF32;
  Tokenizer tokenizer = Tokenizer::characters({"a", "b", " "}, {"<end>", "<begin>"});
  tokenizer.set_eos("<end>");
  tokenizer.set_bos("<begin>");
  SavedModel model{config, some_weights(config), tokenizer};
  lm::save_model(path, model);
  const SavedModel read = lm::load_model(path);
  EXPECT_EQ(lm::to_json(read.config), lm::to_json(model.config));
  ASSERT_EQ(read.weights.size(), model.weights.size());
  for (const auto& [name, tensor] : model.weights) {
    EXPECT_EQ(read.weights.at(name).shape, tensor.shape);
    EXPECT_EQ(read.weights.at(name).bytes, tensor.bytes) << name;
  }
  ASSERT_TRUE(read.tokenizer.has_value());
  EXPECT_EQ(read.tokenizer->decode(read.tokenizer->encode("ab ba")), "ab ba");
  EXPECT_EQ(read.tokenizer->eos_id(), 3);
  EXPECT_EQ(read.tokenizer->bos_id(), 4);
  EXPECT_FALSE(read.tokenizer->pad_id().has_value());

  model.tokenizer.reset();
  lm::save_model(path, model);
  EXPECT_FALSE(lm::load_model(path).tokenizer.has_value());
}

std::string all_of(const SavedModel& model) {
  std::string all = lm::to_json(model.config);
  for (const auto& [name, tensor] : model.weights) all += name + test::bits_of_range(tensor.bytes);
  return all + (model.tokenizer ? model.tokenizer->to_json() : "");
}

TEST(LmCheckpoint, is_the_same_in_memory) {
  const LanguageModelConfig config{.vocab_size = 9, .d_model = 4, .n_layer = 1};
  const SavedModel model{config, some_weights(config), Tokenizer::characters({"a", "b"})};
  const auto bytes =
      test::bytes_written_by([&](const FileSink& sink) { lm::save_model(sink, model); });
  EXPECT_EQ(all_of(lm::load_model(bytes)), all_of(model));
  test::expect_reads_bytes_as_files(
      bytes, [](const FileSource& source) { return all_of(lm::load_model(source)); });
  // Weights of BF16 are read in a second pass.
  StoredFile file = read_safetensors(bytes);
  file.tensors.at("backbone.norm_f.weight") = {"BF16", {4}, std::vector<std::byte>(8)};
  std::vector<std::byte> half;
  write_safetensors(half, file);
  test::expect_reads_bytes_as_files(
      half, [](const FileSource& source) { return all_of(lm::load_model(source)); });
  EXPECT_EQ(test::message_of([&] { (void)lm::load_model({std::vector<std::byte>(3), "mine"}); }),
            "mine: truncated at byte 3: expected an 8-byte header length");
}

TEST(LmCheckpoint, reads_weights_of_bf16) {
  const test::TempDir folder;
  const std::string path = folder / "bf16.safetensors";
  const LanguageModelConfig config{.vocab_size = 9, .d_model = 8, .n_layer = 1};
  lm::save_model(path, {config, some_weights(config)});
  StoredFile file = read_safetensors(path);
  StoredTensor& norm = file.tensors.at("backbone.norm_f.weight");
  norm = {"BF16", {8}, std::vector<std::byte>(16)};
  for (std::size_t i = 0; i < 8; ++i) norm.data[2 * i + 1] = std::byte{0x40};  // 2
  write_safetensors(path, file);
  EXPECT_EQ(lm::load_model(path).weights.at("backbone.norm_f.weight").floats(),
            std::vector<float>(8, 2));
}

TEST(LmCheckpoint, errors_name_the_tensor) {
  const test::TempDir folder;
  const std::string path = folder / "wrong.safetensors";
  const LanguageModelConfig config{.vocab_size = 9, .d_model = 8, .n_layer = 1};
  const SavedModel model{config, some_weights(config), {}};
  const auto failure = [&](const std::function<void(StoredFile&)>& change) {
    lm::save_model(path, model);
    StoredFile file = read_safetensors(path);
    change(file);
    write_safetensors(path, file);
    return test::message_of([&] { (void)lm::load_model(path); });
  };
  EXPECT_EQ(failure([](StoredFile& file) { file.metadata.clear(); }),
            path + ": not a language model file: its metadata has no tensorgrad.lm.config");
  EXPECT_EQ(failure([](StoredFile& file) { file.tensors.erase("backbone.norm_f.weight"); }),
            path + ": the tensor backbone.norm_f.weight is missing");
  EXPECT_EQ(failure([](StoredFile& file) {
              file.tensors["x"] = {"F32", {1}, std::vector<std::byte>(4)};
            }),
            path + ": a model with this configuration has no parameter x");
  EXPECT_EQ(
      failure([](StoredFile& file) { file.tensors.at("backbone.norm_f.weight").shape = {2, 4}; }),
      path + ": backbone.norm_f.weight: expected f32[8], got f32[2,4]");
  EXPECT_EQ(failure([](StoredFile& file) { file.metadata[lm::kTokenizerKey] = "{"; }).find(path),
            0U);
  EXPECT_EQ(failure([](StoredFile& file) {
              file.metadata[lm::kTokenizerKey] = Tokenizer::characters({"a"}).to_json();
              file.metadata[lm::kTokenizerConfigKey] = R"({"eos_token":"<end>"})";
            }),
            path + ": tensorgrad.lm.tokenizer_config: eos_token: the tokenizer has no such token");
  for (const char* ids : {"3", "[-1]", "[0.5]", R"(["a"])"}) {
    EXPECT_EQ(failure([&](StoredFile& file) { file.metadata[lm::kEosIdsKey] = ids; }),
              path + ": tensorgrad.lm.eos_ids: expected a list of ids");
  }
  EXPECT_EQ(failure([](StoredFile& file) { file.metadata[lm::kEosIdsKey] = "[2,9]"; }),
            path + ": eos_ids: expected ids from 0 to 8, got 9");
  // No memory is allocated for the claimed sizes.
  LanguageModelConfig huge = config;
  huge.n_layer = 60'000;
  huge.d_model = 1'000'000;
  EXPECT_EQ(failure([&](StoredFile& file) { file.metadata[lm::kConfigKey] = lm::to_json(huge); }),
            path + ": a model with this configuration has more parameters than the 1384 given");
  EXPECT_EQ(
      test::message_of([&] { lm::save_model(path, {config, model.weights, Tokenizer::bytes()}); }),
      path + ": the tokenizer has ids up to 255, but the model has a vocabulary of 9 tokens");
}

}  // namespace
}  // namespace tensorgrad::testing
