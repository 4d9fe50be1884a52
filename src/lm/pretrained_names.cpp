// SPDX-License-Identifier: MIT
#include "lm/pretrained_names.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

using nn::MixerKind;

constexpr std::string_view kBackbone = "backbone.";
constexpr const char* kHead = "lm_head.weight";

// A tensor of a layer of Llama, which is a block of attention and one of an MLP here.
struct LlamaTensor {
  const char* there;
  int block;  // of the two
  const char* here;
  bool matrix;
};
// Parts of one matrix stand in its order of rows.
constexpr std::array<LlamaTensor, 9> kLlamaTensors = {{
    {"input_layernorm.weight", 0, "norm.weight", false},
    {"self_attn.q_proj.weight", 0, "mixer.in_proj.weight", true},
    {"self_attn.k_proj.weight", 0, "mixer.in_proj.weight", true},
    {"self_attn.v_proj.weight", 0, "mixer.in_proj.weight", true},
    {"self_attn.o_proj.weight", 0, "mixer.out_proj.weight", true},
    {"post_attention_layernorm.weight", 1, "norm.weight", false},
    {"mlp.gate_proj.weight", 1, "mixer.fc1.weight", true},
    {"mlp.up_proj.weight", 1, "mixer.fc1.weight", true},
    {"mlp.down_proj.weight", 1, "mixer.fc2.weight", true},
}};

// Rows of a part of a joined matrix.
std::int64_t rows_of(const LlamaTensor& tensor, const nn::LanguageModelConfig& config) {
  const std::string_view name = tensor.there;
  const std::int64_t kv = config.attention.kv_heads == 0 ? config.heads : config.attention.kv_heads;
  if (name.starts_with("self_attn.k") || name.starts_with("self_attn.v"))
    return config.d_model / config.heads * kv;
  if (name.starts_with("mlp.gate") || name.starts_with("mlp.up")) return config.mlp_width;
  return config.d_model;
}

std::string here_of(const LlamaTensor& tensor, std::int64_t layer) {
  return "backbone.layers." + std::to_string(2 * layer + tensor.block) + "." + tensor.here;
}
std::string there_of(const LlamaTensor& tensor, std::int64_t layer) {
  return "model.layers." + std::to_string(layer) + "." + tensor.there;
}

constexpr std::pair<const char*, const char*> kLlamaEnds[] = {
    {"model.embed_tokens.weight", "backbone.embedding.weight"},
    {"model.norm.weight", "backbone.norm_f.weight"},
    {kHead, kHead}};

Weights llama_here(Weights weights, const nn::LanguageModelConfig& config,
                   const std::string& where) {
  const bool base = std::none_of(weights.begin(), weights.end(), [](const auto& each) {
    return each.first.starts_with("model.") || each.first == kHead;
  });
  Weights result;
  const auto take = [&](const std::string& name) {
    return weights.extract(base ? name.substr(name.find('.') + 1) : name);
  };
  for (std::int64_t layer = 0; layer < config.n_layer / 2; ++layer) {
    for (const LlamaTensor& tensor : kLlamaTensors) {
      auto found = take(there_of(tensor, layer));
      if (found.empty())
        throw IoError(where + ": the tensor " + there_of(tensor, layer) + " is missing");
      HostTensor& part = found.mapped();
      const Shape expected =
          tensor.matrix ? Shape{rows_of(tensor, config), part.shape.back()} : Shape{config.d_model};
      if (part.dtype != f32 || part.shape != expected) {
        throw IoError(where + ": " + there_of(tensor, layer) + ": expected f32" +
                      tensorgrad::to_string(expected) + ", got " +
                      std::string(tensorgrad::to_string(part.dtype)) +
                      tensorgrad::to_string(part.shape));
      }
      auto [joined, fresh] = result.try_emplace(here_of(tensor, layer), part);
      if (fresh) continue;
      if (joined->second.shape[1] != part.shape[1])
        throw IoError(where + ": " + there_of(tensor, layer) + " has another width than others");
      joined->second.shape[0] += part.shape[0];
      joined->second.bytes.insert(joined->second.bytes.end(), part.bytes.begin(), part.bytes.end());
    }
  }
  for (const auto& [there, here] : kLlamaEnds) {
    if (auto found = take(there); !found.empty()) result[here] = std::move(found.mapped());
  }
  // Older files have what is computed.
  for (auto& [name, tensor] : weights) {
    if (!name.ends_with("rotary_emb.inv_freq")) result[name] = std::move(tensor);
  }
  return result;
}

Weights llama_there(const Weights& weights, const nn::LanguageModelConfig& config) {
  Weights result;
  for (std::int64_t layer = 0; layer < config.n_layer / 2; ++layer) {
    std::map<std::string, std::size_t> begins;  // of the next part, in bytes
    for (const LlamaTensor& tensor : kLlamaTensors) {
      const HostTensor& whole = weights.at(here_of(tensor, layer));
      HostTensor part{whole.dtype, whole.shape, {}};
      if (tensor.matrix) part.shape[0] = rows_of(tensor, config);
      std::size_t& begin = begins[here_of(tensor, layer)];
      const auto size = static_cast<std::size_t>(numel(part.shape)) * sizeof(float);
      const auto first = whole.bytes.begin() + static_cast<std::ptrdiff_t>(begin);
      part.bytes.assign(first, first + static_cast<std::ptrdiff_t>(size));
      begin += size;
      result[there_of(tensor, layer)] = std::move(part);
    }
  }
  for (const auto& [there, here] : kLlamaEnds) {
    if (const auto found = weights.find(here); found != weights.end())
      result[there] = found->second;
  }
  return result;
}

// A tensor of a block of GPT-2, which is two layers here. Its matrices are Conv1D: [in, out].
struct Gpt2Tensor {
  const char* there;
  int block;  // of the two
  const char* here;
  bool transposed;
};
constexpr std::array<Gpt2Tensor, 12> kGpt2Tensors = {{
    {"ln_1.weight", 0, "norm.weight", false},
    {"ln_1.bias", 0, "norm.bias", false},
    {"attn.c_attn.weight", 0, "mixer.in_proj.weight", true},
    {"attn.c_attn.bias", 0, "mixer.in_proj.bias", false},
    {"attn.c_proj.weight", 0, "mixer.out_proj.weight", true},
    {"attn.c_proj.bias", 0, "mixer.out_proj.bias", false},
    {"ln_2.weight", 1, "norm.weight", false},
    {"ln_2.bias", 1, "norm.bias", false},
    {"mlp.c_fc.weight", 1, "mixer.fc1.weight", true},
    {"mlp.c_fc.bias", 1, "mixer.fc1.bias", false},
    {"mlp.c_proj.weight", 1, "mixer.fc2.weight", true},
    {"mlp.c_proj.bias", 1, "mixer.fc2.bias", false},
}};
constexpr std::pair<const char*, const char*> kGpt2Ends[] = {
    {"transformer.wte.weight", "backbone.embedding.weight"},
    {"transformer.wpe.weight", "backbone.position_embedding.weight"},
    {"transformer.ln_f.weight", "backbone.norm_f.weight"},
    {"transformer.ln_f.bias", "backbone.norm_f.bias"},
    {kHead, kHead}};

std::string here_of(const Gpt2Tensor& tensor, std::int64_t block) {
  return "backbone.layers." + std::to_string(2 * block + tensor.block) + "." + tensor.here;
}
std::string there_of(const Gpt2Tensor& tensor, std::int64_t block) {
  return "transformer.h." + std::to_string(block) + "." + tensor.there;
}

HostTensor transposed_matrix(const HostTensor& matrix) {
  const std::int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  const std::span<const float> values = matrix.float_span();
  std::vector<float> turned(values.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j)
      turned[static_cast<std::size_t>(j * rows + i)] =
          values[static_cast<std::size_t>(i * columns + j)];
  }
  return HostTensor::from({columns, rows}, turned);
}

Weights gpt2_here(Weights weights, const nn::LanguageModelConfig& config,
                  const std::string& where) {
  const bool base = std::none_of(weights.begin(), weights.end(), [](const auto& each) {
    return each.first.starts_with("transformer.") || each.first == kHead;
  });
  const auto take = [&](const std::string& name) {
    return weights.extract(base ? name.substr(name.find('.') + 1) : name);
  };
  Weights result;
  for (std::int64_t block = 0; block < config.n_layer / 2; ++block) {
    for (const Gpt2Tensor& tensor : kGpt2Tensors) {
      const std::string name = there_of(tensor, block);
      auto found = take(name);
      if (found.empty()) throw IoError(where + ": the tensor " + name + " is missing");
      HostTensor& values = found.mapped();
      if (tensor.transposed && (values.dtype != f32 || values.shape.size() != 2)) {
        throw IoError(where + ": " + name + ": expected an f32 matrix, got " +
                      std::string(tensorgrad::to_string(values.dtype)) +
                      tensorgrad::to_string(values.shape));
      }
      result[here_of(tensor, block)] =
          tensor.transposed ? transposed_matrix(values) : std::move(values);
    }
    // Older files have the causal mask.
    for (const char* mask : {".attn.bias", ".attn.masked_bias"})
      (void)take("transformer.h." + std::to_string(block) + mask);
  }
  for (const auto& [there, here] : kGpt2Ends) {
    if (auto found = take(there); !found.empty()) result[here] = std::move(found.mapped());
  }
  result.merge(weights);  // check_weights() names what is unknown
  return result;
}

Weights gpt2_there(const Weights& weights, const nn::LanguageModelConfig& config) {
  Weights result;
  for (std::int64_t block = 0; block < config.n_layer / 2; ++block) {
    for (const Gpt2Tensor& tensor : kGpt2Tensors) {
      const HostTensor& values = weights.at(here_of(tensor, block));
      result[there_of(tensor, block)] = tensor.transposed ? transposed_matrix(values) : values;
    }
  }
  for (const auto& [there, here] : kGpt2Ends) {
    if (const auto found = weights.find(here); found != weights.end())
      result[there] = found->second;
  }
  return result;
}

bool is_rms(const nn::LanguageModelConfig& config) {
  return config.norm == nn::NormKind::kRmsNorm && config.n_positions == 0;
}
bool is_llama(const nn::LanguageModelConfig& config) {
  return is_rms(config) && config.mlp == nn::MlpKind::kSwiGlu && config.attention.rope &&
         !config.attention.bias;
}
bool is_gpt2(const nn::LanguageModelConfig& config) {
  const nn::CausalAttention::Options& o = config.attention;
  return config.norm == nn::NormKind::kLayerNorm && config.n_positions > 0 &&
         config.mlp == nn::MlpKind::kGelu && !o.rope && o.bias &&
         (o.kv_heads == 0 || o.kv_heads == config.heads);
}

}  // namespace

std::optional<Architecture> architecture_of(const nn::LanguageModelConfig& config) {
  const std::vector<MixerKind>& layers = config.layers;
  const auto all = [&](MixerKind kind) {
    return std::all_of(layers.begin(), layers.end(), [&](MixerKind each) { return each == kind; });
  };
  if (all(MixerKind::kMamba1) && is_rms(config)) return Architecture::kMamba;
  if (all(MixerKind::kMamba2) && is_rms(config)) return Architecture::kMamba2;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] != (i % 2 == 0 ? MixerKind::kAttention : MixerKind::kMlp)) return std::nullopt;
  }
  if (layers.size() % 2 != 0) return std::nullopt;
  if (is_llama(config)) return Architecture::kLlama;
  return is_gpt2(config) ? std::optional(Architecture::kGpt2) : std::nullopt;
}

Weights weights_here(Weights weights, const nn::LanguageModelConfig& config,
                     const std::string& where) {
  if (architecture_of(config) == Architecture::kLlama)
    return llama_here(std::move(weights), config, where);
  if (architecture_of(config) == Architecture::kGpt2)
    return gpt2_here(std::move(weights), config, where);
  const bool base = std::none_of(weights.begin(), weights.end(), [](const auto& each) {
    return each.first.starts_with(kBackbone) || each.first == kHead;
  });
  Weights result;
  while (!weights.empty()) {
    auto each = weights.extract(weights.begin());
    std::string name = (base ? std::string(kBackbone) : "") + each.key();
    if (name == "backbone.embeddings.weight") name = "backbone.embedding.weight";
    result[name] = std::move(each.mapped());
  }
  return result;
}

Weights weights_there(const Weights& weights, const nn::LanguageModelConfig& config) {
  if (architecture_of(config) == Architecture::kLlama) return llama_there(weights, config);
  if (architecture_of(config) == Architecture::kGpt2) return gpt2_there(weights, config);
  Weights result = weights;
  auto table = result.extract("backbone.embedding.weight");
  table.key() = "backbone.embeddings.weight";
  result.insert(std::move(table));
  return result;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
