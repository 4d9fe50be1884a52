// SPDX-License-Identifier: MIT
#include "lm/pretrained_config.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "lm/read_json.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

using ForeignJson = nlohmann::json;
using nn::MixerKind;

constexpr std::int64_t kLargestForeignSize = std::int64_t{1} << 30;
constexpr std::int64_t kMaxForeignLayers = 65'536;
constexpr std::int64_t kMaxForeignExperts = 65'536;
constexpr double kLargestForeign = 1e30;

// Object in the file. Functions with a parameter `usual` return it if the field is missing.
class ForeignConfig {
 public:
  ForeignConfig(const ForeignJson& in, const std::string& file, std::string path)
      : in_(in), file_(file), path_(std::move(path)) {
    if (!in_.is_object()) fail("", "expected an object, got " + shown(in_));
  }

  [[nodiscard]] bool has(const char* key) const { return in_.contains(key); }
  [[nodiscard]] const ForeignJson& at(const char* key) const {
    const auto found = in_.find(key);
    if (found == in_.end()) fail(key, "is missing");
    return *found;
  }
  [[nodiscard]] std::int64_t size(const char* key, std::int64_t most = kLargestForeignSize,
                                  std::int64_t least = 1) const {
    const ForeignJson& given = at(key);
    if (given.is_number_integer() && given >= least && given <= most)
      return given.get<std::int64_t>();
    fail(key, "expected an integer from " + std::to_string(least) + " to " + std::to_string(most) +
                  ", got " + shown(given));
  }
  [[nodiscard]] std::int64_t size_or(const char* key, std::int64_t usual) const {
    return has(key) ? size(key) : usual;
  }
  // Returns the number of taps of a causal convolution, which must be at least 2.
  [[nodiscard]] std::int64_t taps_or(const char* key, std::int64_t usual) const {
    return has(key) ? size(key, kLargestForeignSize, 2) : usual;
  }
  [[nodiscard]] double number_or(const char* key, double usual) const {
    if (!has(key)) return usual;
    const ForeignJson& given = at(key);
    if (given.is_number() && given >= 0 && given <= kLargestForeign) return given.get<double>();
    fail(key, "expected a number of 0 or more, got " + shown(given));
  }
  [[nodiscard]] bool boolean_or(const char* key, bool usual) const {
    if (!has(key)) return usual;
    if (at(key).is_boolean()) return at(key).get<bool>();
    fail(key, "expected true or false, got " + shown(at(key)));
  }
  // Returns 0 if the field is "auto" or missing.
  [[nodiscard]] std::int64_t rank(const char* key) const {
    return !has(key) || at(key) == "auto" ? 0 : size(key);
  }
  // Reads the bounds of dt, which may be equal. An infinite upper bound becomes 0.
  void limits(const char* key, double& least, double& most) const {
    if (!has(key)) return;
    const ForeignJson& given = at(key);
    const auto is_infinite = [](const ForeignJson& value) {
      return value.is_null() ||
             (value.is_object() && value.value("__float__", ForeignJson()) == "Infinity");
    };
    const auto is_limit = [](const ForeignJson& value) {
      return value.is_number() && value >= 0 && value <= kLargestForeign;
    };
    if (!given.is_array() || given.size() != 2 || !is_limit(given[0]) ||
        !(is_infinite(given[1]) || (is_limit(given[1]) && given[1] >= given[0] && given[1] > 0))) {
      fail(key,
           "expected two numbers, the second above 0 and not below the first, got " + shown(given));
    }
    least = given[0].get<double>();
    most = is_infinite(given[1]) ? 0 : given[1].get<double>();
  }
  // Returns a list of layer indices, empty if the field is null or missing.
  [[nodiscard]] std::vector<std::int64_t> indices(const char* key, std::int64_t layers) const {
    std::vector<std::int64_t> all;
    if (!has(key) || at(key).is_null()) return all;
    const ForeignJson& given = at(key);
    const auto fits = [&](const ForeignJson& each) {
      return each.is_number_integer() && each >= 0 && each < layers;
    };
    if (!given.is_array() || !std::all_of(given.begin(), given.end(), fits)) {
      fail(key, "expected a list of integers from 0 to " + std::to_string(layers - 1) + ", got " +
                    shown(given));
    }
    for (const ForeignJson& each : given) all.push_back(each.get<std::int64_t>());
    return all;
  }
  // Throws IoError if the field has a value other than the supported one.
  void only(const char* key, const ForeignJson& value) const {
    if (!has(key) || at(key) == value) return;
    fail(key, "only " + shown(value) + " is supported, got " + shown(at(key)));
  }
  void known(std::initializer_list<const char*> keys) const {
    for (const auto& [key, value] : in_.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        fail(key.c_str(), "unknown field, so the model might not be reproduced exactly");
    }
  }
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const {
    const std::string dot = path_.empty() || key.empty() ? "" : ".";
    const std::string name = path_ + dot + key;
    throw IoError(file_ + ": " + (name.empty() ? "the configuration" : name) + ": " + expected);
  }

 private:
  [[nodiscard]] static std::string shown(const ForeignJson& value) {
    constexpr std::size_t kMaxShownText = 40;
    std::string text = value.dump(-1, ' ', true, ForeignJson::error_handler_t::replace);
    if (text.size() > kMaxShownText) text = text.substr(0, kMaxShownText) + "...";
    return text;
  }
  const ForeignJson& in_;
  const std::string& file_;
  std::string path_;
};

void finish(nn::LanguageModelConfig& config, std::int64_t layers, MixerKind kind) {
  config.n_layer = layers;
  config.layers.assign(static_cast<std::size_t>(layers), kind);
}

nn::LanguageModelConfig transformers_config(const ForeignConfig& in, bool second) {
  nn::LanguageModelConfig config;
  config.vocab_size = in.size("vocab_size");
  config.d_model = in.size("hidden_size");
  config.norm_epsilon = in.number_or("layer_norm_epsilon", 1e-5);
  config.tie_embeddings = in.boolean_or("tie_word_embeddings", !second);
  if (in.has("hidden_act") && in.at("hidden_act") != "swish") in.only("hidden_act", "silu");
  finish(config, in.size("num_hidden_layers", kMaxForeignLayers),
         second ? MixerKind::kMamba2 : MixerKind::kMamba1);
  if (second) {
    nn::Mamba2Options& o = config.mamba2;
    in.only("rms_norm", true);
    o.d_state = in.size_or("state_size", 128);
    o.d_conv = in.taps_or("conv_kernel", 4);
    o.expand = in.size_or("expand", 2);
    o.head_dim = in.size_or("head_dim", 64);
    o.groups = in.size_or("n_groups", 8);
    o.bias = in.boolean_or("use_bias", false);
    o.conv_bias = in.boolean_or("use_conv_bias", true);
    o.norm_epsilon = config.norm_epsilon;
    in.limits("time_step_limit", o.dt_limit_min, o.dt_limit_max);
    const std::int64_t heads = in.size_or("num_heads", 128);
    if (heads * o.head_dim != o.expand * config.d_model) {
      in.fail("num_heads",
              "expected expand * hidden_size / head_dim, got " + std::to_string(heads));
    }
    return config;
  }
  nn::MambaOptions& o = config.mamba;
  o.d_state = in.size_or("state_size", 16);
  o.d_conv = in.taps_or("conv_kernel", 4);
  o.expand = in.size_or("expand", 2);
  o.dt_rank = in.rank("time_step_rank");
  o.bias = in.boolean_or("use_bias", false);
  o.conv_bias = in.boolean_or("use_conv_bias", true);
  o.b_c_dt_norm = in.at("model_type") == "falcon_mamba";
  if (o.b_c_dt_norm) o.norm_epsilon = in.number_or("mixer_rms_eps", 1e-6);
  return config;
}

// Reads the sizes, the norm and attention, which have the same fields in Llama, Bamba and Jamba.
nn::LanguageModelConfig pair_config(const ForeignConfig& in, double usual_epsilon) {
  nn::LanguageModelConfig config;
  config.vocab_size = in.size("vocab_size");
  config.d_model = in.size("hidden_size");
  config.norm_epsilon = in.number_or("rms_norm_eps", usual_epsilon);
  config.tie_embeddings = in.boolean_or("tie_word_embeddings", false);
  in.only("hidden_act", "silu");
  in.only("sliding_window", nullptr);
  config.heads = in.size("num_attention_heads");
  config.mlp_width = in.size("intermediate_size");
  if (config.d_model % config.heads != 0)
    in.fail("num_attention_heads", "expected a divisor of hidden_size");
  if (in.has("head_dim") && !in.at("head_dim").is_null() &&
      in.size("head_dim") != config.d_model / config.heads) {
    in.fail("head_dim", "expected hidden_size / num_attention_heads");
  }
  config.attention.kv_heads =
      in.has("num_key_value_heads") && in.at("num_key_value_heads").is_null()
          ? config.heads
          : in.size_or("num_key_value_heads", config.heads);
  config.attention.max_length = in.size_or("max_position_embeddings", 2048);
  return config;
}

// Returns the base of rotary embeddings. `rotated` is the only supported fraction of a head that
// they rotate.
double rope_base(const ForeignConfig& in, const std::string& file, double rotated) {
  in.only("rope_scaling", nullptr);
  const ForeignJson none = ForeignJson::object();
  const ForeignConfig rope(in.has("rope_parameters") ? in.at("rope_parameters") : none, file,
                           "rope_parameters");
  rope.known({"rope_theta", "rope_type", "partial_rotary_factor"});
  rope.only("rope_type", "default");
  for (const ForeignConfig* each : {&rope, &in}) each->only("partial_rotary_factor", rotated);
  const double base = rope.number_or("rope_theta", in.number_or("rope_theta", 10000));
  if (base > 0) return base;
  const ForeignConfig& with_base = rope.has("rope_theta") ? rope : in;
  with_base.fail("rope_theta", "expected a number above 0");
}

// Reads Llama, or Mistral without a sliding window: alternating attention and MLPs.
nn::LanguageModelConfig llama_config(const ForeignConfig& in, const std::string& file) {
  nn::LanguageModelConfig config = pair_config(in, 1e-6);
  in.only("pretraining_tp", 1);
  config.attention.bias = in.boolean_or("attention_bias", false);
  config.mlp_bias = in.boolean_or("mlp_bias", false);
  config.attention.rope_base = rope_base(in, file, 1);
  const std::int64_t layers = in.size("num_hidden_layers", kMaxForeignLayers / 2);
  config.n_layer = 2 * layers;
  for (std::int64_t i = 0; i < layers; ++i)
    config.layers.insert(config.layers.end(), {MixerKind::kAttention, MixerKind::kMlp});
  return config;
}

nn::LanguageModelConfig bamba_config(const ForeignConfig& in, const std::string& file) {
  nn::LanguageModelConfig config = pair_config(in, 1e-5);
  config.attention.bias = in.boolean_or("attention_bias", false);
  config.mlp_bias = in.boolean_or("mlp_bias", false);
  config.attention.rope_base = rope_base(in, file, 0.5);
  const std::int64_t head_dim = config.d_model / config.heads;
  if (head_dim % 4 != 0) {
    in.fail("num_attention_heads",
            "expected hidden_size / num_attention_heads to be a multiple of 4, because half of a "
            "head is rotated, got " +
                std::to_string(head_dim));
  }
  config.attention.rope_dims = head_dim / 2;
  nn::Mamba2Options& o = config.mamba2;
  o.d_state = in.size_or("mamba_d_state", 256);
  o.d_conv = in.taps_or("mamba_d_conv", 4);
  o.expand = in.size_or("mamba_expand", 2);
  o.groups = in.size_or("mamba_n_groups", 1);
  o.bias = in.boolean_or("mamba_proj_bias", false);
  o.conv_bias = in.boolean_or("mamba_conv_bias", true);
  o.norm_epsilon = config.norm_epsilon;
  if (in.has("time_step_limit") && !in.at("time_step_limit").is_null())
    in.limits("time_step_limit", o.dt_limit_min, o.dt_limit_max);
  const std::int64_t heads = in.size_or("mamba_n_heads", 128), inner = o.expand * config.d_model;
  o.head_dim = in.rank("mamba_d_head");
  if (o.head_dim == 0) o.head_dim = std::max<std::int64_t>(1, inner / heads);
  if (heads * o.head_dim != inner) {
    in.fail("mamba_n_heads",
            "expected mamba_expand * hidden_size / mamba_d_head, got " + std::to_string(heads));
  }
  const std::int64_t layers = in.size("num_hidden_layers", kMaxForeignLayers / 2);
  finish(config, 2 * layers, MixerKind::kMlp);
  for (std::int64_t i = 0; i < layers; ++i)
    config.layers[static_cast<std::size_t>(2 * i)] = MixerKind::kMamba2;
  for (const std::int64_t layer : in.indices("attn_layer_indices", layers))
    config.layers[static_cast<std::size_t>(2 * layer)] = MixerKind::kAttention;
  return config;
}

nn::LanguageModelConfig jamba_config(const ForeignConfig& in) {
  nn::LanguageModelConfig config = pair_config(in, 1e-6);
  config.attention.rope = false;
  in.only("mamba_inner_layernorms", true);
  nn::MambaOptions& o = config.mamba;
  o.d_state = in.size_or("mamba_d_state", 16);
  o.d_conv = in.taps_or("mamba_d_conv", 4);
  o.expand = in.size_or("mamba_expand", 2);
  o.dt_rank = in.rank("mamba_dt_rank");
  o.bias = in.boolean_or("mamba_proj_bias", false);
  o.conv_bias = in.boolean_or("mamba_conv_bias", true);
  o.b_c_dt_norm = o.b_c_dt_norm_weights = true;
  o.norm_epsilon = config.norm_epsilon;
  config.moe = {.experts = in.has("num_experts") ? in.size("num_experts", kMaxForeignExperts) : 16,
                .top_k = in.size_or("num_experts_per_tok", 2),
                .width = config.mlp_width};
  const std::int64_t layers = in.size("num_hidden_layers", kMaxForeignLayers / 2);
  const auto every = [&](const std::string& what, std::int64_t period, std::int64_t offset) {
    const std::string period_key = what + "_layer_period", offset_key = what + "_layer_offset";
    if (in.has(period_key.c_str())) period = in.size(period_key.c_str());
    if (in.has(offset_key.c_str())) offset = in.size(offset_key.c_str(), kLargestForeignSize, 0);
    if (offset >= period) {
      in.fail(offset_key, "expected a number below " + period_key + " " + std::to_string(period) +
                              ", got " + std::to_string(offset));
    }
    return [=](std::int64_t layer) { return layer % period == offset; };
  };
  const auto attends = every("attn", 8, 4), mixes = every("expert", 2, 1);
  const bool mixture = config.moe.experts > 1;
  if (mixture && config.moe.top_k > config.moe.experts) {
    in.fail("num_experts_per_tok", "expected at most num_experts " +
                                       std::to_string(config.moe.experts) + ", got " +
                                       std::to_string(config.moe.top_k));
  }
  config.n_layer = 2 * layers;
  for (std::int64_t i = 0; i < layers; ++i) {
    config.layers.push_back(attends(i) ? MixerKind::kAttention : MixerKind::kMamba1);
    config.layers.push_back(mixture && mixes(i) ? MixerKind::kMoe : MixerKind::kMlp);
  }
  return config;
}

// Returns the kinds of the layers of Zamba2, by `layers_block_type`. Newer versions of transformers
// have "linear_attention" for "mamba".
std::vector<MixerKind> zamba2_layers(const ForeignConfig& in) {
  const std::int64_t count = in.size("num_hidden_layers", kMaxForeignLayers);
  const ForeignJson& given = in.at("layers_block_type");
  std::vector<MixerKind> layers;
  for (const ForeignJson& each : given.is_array() ? given : ForeignJson::array()) {
    if (each == "hybrid") layers.push_back(MixerKind::kMamba2Shared);
    if (each == "mamba" || each == "linear_attention") layers.push_back(MixerKind::kMamba2);
  }
  const bool shares = std::count(layers.begin(), layers.end(), MixerKind::kMamba2Shared) > 0;
  if (!shares || layers.size() != given.size() ||
      static_cast<std::int64_t>(layers.size()) != count) {
    in.fail("layers_block_type", "expected a list of \"mamba\" and \"hybrid\" for " +
                                     std::to_string(count) +
                                     " layers, of which one or more are hybrid");
  }
  return layers;
}

// Reads the options of the shared blocks of Zamba2.
nn::SharedTransformer::Options zamba2_shared(const ForeignConfig& in, const std::string& file,
                                             std::int64_t d_model) {
  nn::SharedTransformer::Options o;
  o.blocks = in.size_or("num_mem_blocks", 1);
  o.heads = in.size_or("num_attention_heads", 32);
  if (2 * d_model % o.heads != 0)
    in.fail("num_attention_heads", "expected a divisor of 2 * hidden_size");
  const std::int64_t head_dim = 2 * d_model / o.heads;
  if (in.has("attention_head_dim") && in.size("attention_head_dim") != head_dim)
    in.fail("attention_head_dim", "expected 2 * hidden_size / num_attention_heads");
  const bool grouped = in.has("num_key_value_heads") && !in.at("num_key_value_heads").is_null();
  o.attention.kv_heads = grouped ? in.size("num_key_value_heads") : o.heads;
  if (o.heads % o.attention.kv_heads != 0)
    in.fail("num_key_value_heads", "expected a divisor of num_attention_heads");
  o.attention.max_length = in.size_or("max_position_embeddings", 4096);
  o.attention.rope = in.boolean_or("use_mem_rope", false);
  in.only("use_long_context", false);
  if (o.attention.rope) {
    if (head_dim % 2 != 0) {
      in.fail("num_attention_heads",
              "expected 2 * hidden_size / num_attention_heads to be even, because heads are "
              "rotated, got " +
                  std::to_string(head_dim));
    }
    o.attention.rope_base = rope_base(in, file, 1);
  }
  in.only("hidden_act", "gelu");
  const bool wide = in.has("intermediate_size") && !in.at("intermediate_size").is_null();
  o.mlp_width = wide ? in.size("intermediate_size") : 4 * d_model;
  if (o.mlp_width > kLargestForeignSize) in.fail("hidden_size", "is too large for the MLP");
  o.mlp_bias = in.boolean_or("add_bias_linear", false);
  o.adapter_rank = in.size_or("adapter_rank", 128);  // transformers has adapters in all MLPs
  o.attention_adapters = in.boolean_or("use_shared_attention_adapter", false);
  if (o.attention_adapters && o.attention.kv_heads != o.heads) {
    in.fail("num_key_value_heads", "expected num_attention_heads " + std::to_string(o.heads) +
                                       " with use_shared_attention_adapter, got " +
                                       std::to_string(o.attention.kv_heads));
  }
  return o;
}

nn::LanguageModelConfig zamba2_config(const ForeignConfig& in, const std::string& file) {
  nn::LanguageModelConfig config;
  config.vocab_size = in.size("vocab_size");
  config.d_model = in.size("hidden_size");
  config.norm_epsilon = in.number_or("rms_norm_eps", 1e-5);
  config.tie_embeddings = in.boolean_or("tie_word_embeddings", true);
  config.layers = zamba2_layers(in);
  config.n_layer = static_cast<std::int64_t>(config.layers.size());
  config.shared = zamba2_shared(in, file, config.d_model);
  nn::Mamba2Options& o = config.mamba2;
  o.d_state = in.size_or("mamba_d_state", 64);
  o.d_conv = in.taps_or("mamba_d_conv", 4);
  o.expand = in.size_or("mamba_expand", 2);
  o.groups = in.size_or("mamba_ngroups", 1);
  o.bias = config.shared.mlp_bias;
  in.only("use_conv_bias", true);
  in.only("time_step_limit", nullptr);
  o.dt_limit_min = in.number_or("time_step_min", 1e-3);
  const std::int64_t heads = in.size_or("n_mamba_heads", 8), inner = o.expand * config.d_model;
  if (inner % heads != 0)
    in.fail("n_mamba_heads",
            "expected a divisor of mamba_expand * hidden_size, got " + std::to_string(heads));
  o.head_dim = inner / heads;
  if (o.head_dim > kLargestForeignSize) in.fail("hidden_size", "is too large for n_mamba_heads");
  if (in.has("mamba_headdim") && in.size("mamba_headdim") != o.head_dim)
    in.fail("mamba_headdim", "expected mamba_expand * hidden_size / n_mamba_heads");
  return config;
}

nn::LanguageModelConfig gpt2_config(const ForeignConfig& in) {
  const std::int64_t blocks = in.size_or("n_layer", 12);
  if (blocks > kMaxForeignLayers / 2) (void)in.size("n_layer", kMaxForeignLayers / 2);
  const std::int64_t width = in.size_or("n_embd", 768), heads = in.size_or("n_head", 12);
  if (width % heads != 0) in.fail("n_head", "expected a divisor of n_embd");
  nn::LanguageModelConfig config = nn::gpt2_config(in.size_or("vocab_size", 50'257), width, blocks,
                                                   heads, in.size_or("n_positions", 1024));
  config.norm_epsilon = in.number_or("layer_norm_epsilon", 1e-5);
  config.tie_embeddings = in.boolean_or("tie_word_embeddings", true);
  if (in.has("n_inner") && !in.at("n_inner").is_null()) config.mlp_width = in.size("n_inner");
  if (config.mlp_width > kLargestForeignSize) in.fail("n_embd", "is too large for n_inner");
  if (in.has("activation_function") && in.at("activation_function") != "gelu_pytorch_tanh")
    in.only("activation_function", "gelu_new");
  in.only("scale_attn_weights", true);
  in.only("scale_attn_by_inverse_layer_idx", false);
  in.only("add_cross_attention", false);
  return config;
}

// Reads a configuration of mamba-ssm. Fields that only affect training or its kernels are known,
// but ignored.
nn::LanguageModelConfig state_spaces_config(const ForeignConfig& in, const std::string& file) {
  nn::LanguageModelConfig config;
  const std::int64_t vocab = in.size("vocab_size");
  const std::int64_t multiple = in.size_or("pad_vocab_size_multiple", 8);
  config.vocab_size = (vocab + multiple - 1) / multiple * multiple;
  if (config.vocab_size > kLargestForeignSize) {
    in.fail("pad_vocab_size_multiple", "expected at most " + std::to_string(kLargestForeignSize) +
                                           " tokens with vocab_size " + std::to_string(vocab) +
                                           ", got " + std::to_string(config.vocab_size));
  }
  config.d_model = in.size("d_model");
  config.norm_epsilon = in.number_or("norm_epsilon", 1e-5);
  config.tie_embeddings = in.boolean_or("tie_embeddings", true);
  in.only("rms_norm", true);
  in.only("d_intermediate", 0);
  in.only("attn_layer_idx", ForeignJson::array());
  const ForeignJson none = ForeignJson::object();
  const ForeignConfig ssm(in.has("ssm_cfg") ? in.at("ssm_cfg") : none, file, "ssm_cfg");
  const ForeignJson kind = ssm.has("layer") ? ssm.at("layer") : ForeignJson("Mamba1");
  const std::int64_t layers = in.size("n_layer", kMaxForeignLayers);
  if (kind == "Mamba1") {
    ssm.known({"layer", "d_state", "d_conv", "expand", "dt_rank", "bias", "conv_bias", "dt_min",
               "dt_max", "dt_init", "dt_scale", "dt_init_floor", "use_fast_path"});
    nn::MambaOptions& o = config.mamba;
    o.d_state = ssm.size_or("d_state", 16);
    o.d_conv = ssm.taps_or("d_conv", 4);
    o.expand = ssm.size_or("expand", 2);
    o.dt_rank = ssm.rank("dt_rank");
    o.bias = ssm.boolean_or("bias", false);
    o.conv_bias = ssm.boolean_or("conv_bias", true);
    finish(config, layers, MixerKind::kMamba1);
    return config;
  }
  if (kind != "Mamba2") ssm.fail("layer", "expected Mamba1 or Mamba2, got " + kind.dump());
  ssm.known({"layer",         "d_state",      "d_conv",    "expand",
             "headdim",       "ngroups",      "bias",      "conv_bias",
             "dt_limit",      "d_ssm",        "rmsnorm",   "norm_before_gate",
             "D_has_hdim",    "A_init_range", "dt_min",    "dt_max",
             "dt_init_floor", "chunk_size",   "conv_init", "use_mem_eff_path"});
  ssm.only("d_ssm", nullptr);
  ssm.only("rmsnorm", true);
  ssm.only("norm_before_gate", false);
  ssm.only("D_has_hdim", false);
  nn::Mamba2Options& o = config.mamba2;
  o.d_state = ssm.size_or("d_state", 128);
  o.d_conv = ssm.taps_or("d_conv", 4);
  o.expand = ssm.size_or("expand", 2);
  o.head_dim = ssm.size_or("headdim", 64);
  o.groups = ssm.size_or("ngroups", 1);
  o.bias = ssm.boolean_or("bias", false);
  o.conv_bias = ssm.boolean_or("conv_bias", true);
  ssm.limits("dt_limit", o.dt_limit_min, o.dt_limit_max);
  finish(config, layers, MixerKind::kMamba2);
  return config;
}

}  // namespace

nlohmann::json python_json(std::string_view text, const std::string& file) {
  // The replacement has the same length, so that byte positions in errors are those of the file.
  std::string plain(text);
  bool quoted = false;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == '"') quoted = !quoted;
    if (quoted && plain[i] == '\\') ++i;
    if (quoted) continue;
    if (std::string_view(plain).substr(i, 8) == "Infinity") plain.replace(i, 8, "null    ");
  }
  return read_json(plain, file + ":");
}

nn::LanguageModelConfig pretrained_config(const nlohmann::json& root, const std::string& file) {
  const ForeignConfig in(root, file, "");
  if (in.has("quantization_config") && !in.at("quantization_config").is_null()) {
    in.fail("quantization_config",
            "quantized weights of other libraries are not supported; save the model dequantized "
            "(tg lm quantize quantizes it)");
  }
  if (in.has("model_type")) {
    const nlohmann::json& type = in.at("model_type");
    if (type == "mamba" || type == "falcon_mamba" || type == "mamba2")
      return transformers_config(in, type == "mamba2");
    if (type == "llama" || type == "mistral") return llama_config(in, file);
    if (type == "gpt2") return gpt2_config(in);
    if (type == "bamba") return bamba_config(in, file);
    if (type == "jamba") return jamba_config(in);
    if (type == "zamba2") return zamba2_config(in, file);
    in.fail("model_type",
            "expected mamba, falcon_mamba, mamba2, llama, mistral, gpt2, bamba, jamba or zamba2, "
            "got " +
                type.dump());
  }
  if (in.has("ssm_cfg") || in.has("n_layer")) return state_spaces_config(in, file);
  in.fail("model_type",
          "is missing, and so is ssm_cfg; expected a configuration of transformers "
          "or mamba-ssm");
}

std::vector<std::int32_t> eos_ids_in(const nlohmann::json& root, const std::string& file,
                                     std::int64_t vocab_size) {
  const ForeignConfig in(root, file, "");
  std::vector<std::int32_t> ids;
  if (!in.has("eos_token_id") || in.at("eos_token_id").is_null()) return ids;
  const ForeignJson& given = in.at("eos_token_id");
  for (const ForeignJson& id : given.is_array() ? given : ForeignJson::array({given})) {
    if (!id.is_number_integer()) in.fail("eos_token_id", "expected an id or a list of ids");
    if (id >= 0 && id < vocab_size) ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
