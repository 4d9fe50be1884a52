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

// Tensor of a transformers layer. Except in Zamba2, such a layer is two layers in tensorgrad, a
// mixer and an MLP. In identifiers, `here` means tensorgrad and `there` transformers.
struct LayerTensor {
  std::string there;
  int block;  // 0: layer of the mixer, 1: layer of the MLP
  std::string here;
  // Axis along which parts of a matrix are joined, in the order of the table; -1: not a part.
  int axis = -1;
  std::int64_t size = 0;  // of the part, along the axis
};

// Names of the MLP and of norms in transformers.
struct LayerNames {
  const char* mlp_norm;
  const char* mlp;
  const char* final_norm;
};

LayerNames layer_names(const nn::LanguageModelConfig& config) {
  if (architecture_of(config) == Architecture::kLlama)
    return {"post_attention_layernorm", "mlp.", "model.norm.weight"};
  return {"pre_ff_layernorm", "feed_forward.", "model.final_layernorm.weight"};
}

// Returns the tensors of a Mamba or Mamba-2 mixer, which transformers stores unchanged.
std::vector<LayerTensor> mamba_tensors(const nn::LanguageModelConfig& config, bool second) {
  const bool bias = second ? config.mamba2.bias : config.mamba.bias;
  std::vector<std::pair<const char*, const char*>> names = {{"A_log", "A_log"},
                                                            {"D", "D"},
                                                            {"in_proj.weight", "in_proj.weight"},
                                                            {"conv1d.weight", "conv1d.weight"},
                                                            {"out_proj.weight", "out_proj.weight"}};
  if (bias) {
    names.emplace_back("in_proj.bias", "in_proj.bias");
    names.emplace_back("out_proj.bias", "out_proj.bias");
  }
  if (second ? config.mamba2.conv_bias : config.mamba.conv_bias)
    names.emplace_back("conv1d.bias", "conv1d.bias");
  if (second) {
    names.insert(names.end(), {{"dt_bias", "dt_bias"}, {"norm.weight", "norm.weight"}});
  } else {
    names.insert(names.end(), {{"x_proj.weight", "x_proj.weight"},
                               {"dt_proj.weight", "dt_proj.weight"},
                               {"dt_proj.bias", "dt_proj.bias"},
                               {"dt_layernorm.weight", "dt_norm.weight"},
                               {"b_layernorm.weight", "b_norm.weight"},
                               {"c_layernorm.weight", "c_norm.weight"}});
  }
  std::vector<LayerTensor> tensors;
  for (const auto& [there, here] : names)
    tensors.push_back({std::string("mamba.") + there, 0, std::string("mixer.") + here});
  return tensors;
}

std::vector<LayerTensor> attention_tensors(const nn::LanguageModelConfig& config) {
  const std::int64_t kv_rows = config.d_model / config.heads * kv_heads_of(config);
  std::vector<LayerTensor> tensors;
  for (const char* kind : {"weight", "bias"}) {
    if (kind[0] == 'b' && !config.attention.bias) break;
    const std::string last = kind, joined = "mixer.in_proj." + last;
    tensors.insert(tensors.end(), {{"self_attn.q_proj." + last, 0, joined, 0, config.d_model},
                                   {"self_attn.k_proj." + last, 0, joined, 0, kv_rows},
                                   {"self_attn.v_proj." + last, 0, joined, 0, kv_rows},
                                   {"self_attn.o_proj." + last, 0, "mixer.out_proj." + last}});
  }
  return tensors;
}

std::vector<LayerTensor> mlp_tensors(const nn::LanguageModelConfig& config, const std::string& mlp,
                                     bool mixture) {
  const std::string fc1 = "mixer.fc1.", fc2 = "mixer.fc2.";
  std::vector<LayerTensor> tensors;
  if (!mixture) {
    for (const char* kind : {"weight", "bias"}) {
      if (kind[0] == 'b' && !config.mlp_bias) break;
      const std::string last = kind;
      tensors.insert(tensors.end(),
                     {{mlp + "gate_proj." + last, 1, fc1 + last, 0, config.mlp_width},
                      {mlp + "up_proj." + last, 1, fc1 + last, 0, config.mlp_width},
                      {mlp + "down_proj." + last, 1, fc2 + last}});
    }
    return tensors;
  }
  tensors.push_back({mlp + "router.weight", 1, "mixer.router.weight"});
  for (const char* kind : {"gate", "up", "down"}) {
    const bool down = kind[0] == 'd';
    for (std::int64_t expert = 0; expert < config.moe.experts; ++expert) {
      tensors.push_back({mlp + "experts." + std::to_string(expert) + "." + kind + "_proj.weight", 1,
                         (down ? fc2 : fc1) + "weight", down ? 1 : 0, config.moe.width});
    }
  }
  return tensors;
}

// Returns the tensors of a transformers layer that is a mixer and an MLP, by their full names.
std::vector<LayerTensor> pair_tensors(const nn::LanguageModelConfig& config,
                                      const LayerNames& names, std::int64_t pair) {
  const auto first = static_cast<std::size_t>(2 * pair);
  const MixerKind mixer = config.layers[first];
  std::vector<LayerTensor> tensors = {{"input_layernorm.weight", 0, "norm.weight"},
                                      {names.mlp_norm + std::string(".weight"), 1, "norm.weight"}};
  for (auto& each : mixer == MixerKind::kAttention
                        ? attention_tensors(config)
                        : mamba_tensors(config, mixer == MixerKind::kMamba2)) {
    tensors.push_back(std::move(each));
  }
  for (auto& each : mlp_tensors(config, names.mlp, config.layers[first + 1] == MixerKind::kMoe)) {
    tensors.push_back(std::move(each));
  }
  for (LayerTensor& each : tensors) {
    each.there = "model.layers." + std::to_string(pair) + "." + each.there;
    each.here = "backbone.layers." + std::to_string(2 * pair + each.block) + "." + each.here;
  }
  return tensors;
}

// Returns the layers that use shared blocks.
std::vector<std::int64_t> shared_layers(const nn::LanguageModelConfig& config) {
  std::vector<std::int64_t> layers;
  for (std::int64_t i = 0; i < config.n_layer; ++i) {
    if (config.layers[static_cast<std::size_t>(i)] == MixerKind::kMamba2Shared) layers.push_back(i);
  }
  return layers;
}

std::string shared_prefix(std::int64_t layer) {
  return "model.layers." + std::to_string(layer) + ".shared_transformer.";
}

// Returns the tensors of a shared block. In transformers, they are in the first layer that uses it.
std::vector<LayerTensor> shared_tensors(const nn::LanguageModelConfig& config, std::int64_t layer,
                                        std::int64_t block) {
  const nn::SharedTransformer::Options& o = config.shared;
  const std::int64_t head = 2 * config.d_model / o.heads;
  const std::int64_t kv = head * (o.attention.kv_heads == 0 ? o.heads : o.attention.kv_heads);
  const std::string there = shared_prefix(layer);
  const std::string here = "backbone.shared." + std::to_string(block) + ".";
  const std::string joined = here + "attention.in_proj.weight";
  std::vector<LayerTensor> tensors = {
      {there + "input_layernorm.weight", 0, here + "norm.weight"},
      {there + "self_attn.q_proj.weight", 0, joined, 0, 2 * config.d_model},
      {there + "self_attn.k_proj.weight", 0, joined, 0, kv},
      {there + "self_attn.v_proj.weight", 0, joined, 0, kv},
      {there + "self_attn.o_proj.weight", 0, here + "attention.out_proj.weight"},
      {there + "pre_ff_layernorm.weight", 0, here + "mlp_norm.weight"}};
  for (const char* last : {"weight", "bias"}) {
    if (last[0] == 'b' && !o.mlp_bias) break;
    tensors.push_back({there + "feed_forward.gate_up_proj." + last, 0, here + "fc1." + last});
    tensors.push_back({there + "feed_forward.down_proj." + last, 0, here + "fc2." + last});
  }
  return tensors;
}

// Returns the tensors of a layer of Zamba2, by their full names. Its adapters are in the first
// layer that uses the same shared block, numbered by the layers that use any.
std::vector<LayerTensor> zamba2_tensors(const nn::LanguageModelConfig& config, std::int64_t layer) {
  const std::vector<std::int64_t> users = shared_layers(config);
  const auto found = std::find(users.begin(), users.end(), layer);
  const bool shares = found != users.end();
  const std::string there = "model.layers." + std::to_string(layer) + ".";
  const std::string here = "backbone.layers." + std::to_string(layer) + ".";
  std::vector<LayerTensor> tensors = mamba_tensors(config, true);
  tensors.push_back({"input_layernorm.weight", 0, "norm.weight"});
  for (LayerTensor& each : tensors) {
    each.there = there + (shares ? "mamba_decoder." : "") + each.there;
    each.here = here + each.here;
  }
  if (!shares) return tensors;
  tensors.push_back({there + "linear.weight", 0, here + "shared.out.weight"});
  const std::int64_t use = found - users.begin(), block = use % config.shared.blocks;
  const std::int64_t first = users[static_cast<std::size_t>(block)];
  std::vector<std::pair<std::string, std::string>> adapters = {
      {"feed_forward.gate_up_proj_adapter_list.", "mlp"}};
  if (config.shared.attention_adapters) {
    for (const char* part : {"q", "k", "v"})
      adapters.emplace_back("self_attn.linear_" + std::string(part) + "_adapter_list.", part);
  }
  for (const auto& [list, name] : adapters) {
    const std::string item = shared_prefix(first) + list + std::to_string(use);
    const std::string adapter = here + "shared." + name;
    tensors.push_back({item + ".0.weight", 0, adapter + ".down.weight"});
    tensors.push_back({item + ".1.weight", 0, adapter + ".up.weight"});
  }
  if (layer == first) {
    for (LayerTensor& each : shared_tensors(config, layer, block))
      tensors.push_back(std::move(each));
  }
  return tensors;
}

// Returns the number of layers that transformers counts.
std::int64_t layers_there_of(const nn::LanguageModelConfig& config) {
  return architecture_of(config) == Architecture::kZamba2 ? config.n_layer : config.n_layer / 2;
}

// Returns the tensors of a transformers layer, by their full names.
std::vector<LayerTensor> layer_tensors(const nn::LanguageModelConfig& config,
                                       const LayerNames& names, std::int64_t layer) {
  return architecture_of(config) == Architecture::kZamba2 ? zamba2_tensors(config, layer)
                                                          : pair_tensors(config, names, layer);
}

std::vector<std::pair<std::string, std::string>> layer_ends(const nn::LanguageModelConfig& config) {
  return {{"model.embed_tokens.weight", "backbone.embedding.weight"},
          {layer_names(config).final_norm, "backbone.norm_f.weight"},
          {kHead, kHead}};
}

// Returns the stride of an axis, in bytes.
std::size_t bytes_behind(const Shape& shape, int axis) {
  std::size_t bytes = sizeof(float);
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < shape.size(); ++i)
    bytes *= static_cast<std::size_t>(shape[i]);
  return bytes;
}

HostTensor joined_parts(const std::vector<HostTensor>& parts, int axis) {
  HostTensor whole{f32, parts.front().shape, {}};
  std::int64_t& size = whole.shape.at(static_cast<std::size_t>(axis));
  size = 0;
  for (const HostTensor& part : parts) size += part.shape.at(static_cast<std::size_t>(axis));
  const std::int64_t rows = axis == 0 ? 1 : whole.shape[0];
  whole.bytes.reserve(static_cast<std::size_t>(numel(whole.shape)) * sizeof(float));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const HostTensor& part : parts) {
      const std::size_t run = part.bytes.size() / static_cast<std::size_t>(rows);
      const auto from = part.bytes.begin() + row * static_cast<std::ptrdiff_t>(run);
      whole.bytes.insert(whole.bytes.end(), from, from + static_cast<std::ptrdiff_t>(run));
    }
  }
  return whole;
}

// Returns the slice [begin, begin + size) along an axis.
HostTensor part_of(const HostTensor& whole, int axis, std::int64_t begin, std::int64_t size) {
  HostTensor part{whole.dtype, whole.shape, {}};
  part.shape.at(static_cast<std::size_t>(axis)) = size;
  const std::size_t step = bytes_behind(whole.shape, axis);
  const std::size_t row =
      step * static_cast<std::size_t>(whole.shape[static_cast<std::size_t>(axis)]);
  const std::size_t rows = whole.bytes.size() / row;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto from = whole.bytes.begin() +
                      static_cast<std::ptrdiff_t>(i * row + static_cast<std::size_t>(begin) * step);
    part.bytes.insert(part.bytes.end(), from,
                      from + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(size) * step));
  }
  return part;
}

// Throws IoError if a part does not fit the configuration or the parts before it.
void check_part(const LayerTensor& tensor, const HostTensor& part,
                const std::vector<HostTensor>& before, const std::string& where) {
  const auto axis = static_cast<std::size_t>(tensor.axis);
  const std::size_t rank = tensor.here.ends_with("bias") ? 1 : 2;
  Shape expected = part.shape.size() == rank ? part.shape : Shape(rank, tensor.size);
  expected[axis] = tensor.size;
  if (part.dtype != f32 || part.shape != expected) {
    throw IoError(where + ": " + tensor.there + ": expected f32" + tensorgrad::to_string(expected) +
                  ", got " + std::string(tensorgrad::to_string(part.dtype)) +
                  tensorgrad::to_string(part.shape));
  }
  if (!before.empty() && rank == 2 && before.front().shape[1 - axis] != part.shape[1 - axis])
    throw IoError(where + ": " + tensor.there + " has another width than others");
}

// Gives the tensors of shared blocks the names of the first layer that uses the block. Files may
// also have them in the other layers. Throws IoError if two copies differ.
void drop_copies(Weights& weights, const nn::LanguageModelConfig& config, bool base,
                 const std::string& where) {
  const std::vector<std::int64_t> users = shared_layers(config);
  const auto prefix_of = [&](std::int64_t layer) {
    const std::string prefix = shared_prefix(layer);
    return base ? prefix.substr(prefix.find('.') + 1) : prefix;
  };
  for (std::size_t use = 0; use < users.size(); ++use) {
    const std::size_t block = use % static_cast<std::size_t>(config.shared.blocks);
    if (block == use) continue;
    const std::string prefix = prefix_of(users[use]), first = prefix_of(users[block]);
    for (auto at = weights.lower_bound(prefix);
         at != weights.end() && at->first.starts_with(prefix);) {
      auto copy = weights.extract(at++);
      const std::string name = copy.key();
      copy.key() = first + name.substr(prefix.size());
      const auto [kept, inserted, left] = weights.insert(std::move(copy));
      if (inserted || (left.mapped().shape == kept->second.shape &&
                       left.mapped().bytes == kept->second.bytes)) {
        continue;
      }
      throw IoError(where + ": " + name + " differs from " + kept->first +
                    ", but the two layers share a block");
    }
  }
}

Weights layers_here(Weights weights, const nn::LanguageModelConfig& config,
                    const std::string& where) {
  const bool base = std::none_of(weights.begin(), weights.end(), [](const auto& each) {
    return each.first.starts_with("model.") || each.first == kHead;
  });
  Weights result;
  const auto take = [&](const std::string& name) {
    return weights.extract(base ? name.substr(name.find('.') + 1) : name);
  };
  if (architecture_of(config) == Architecture::kZamba2) drop_copies(weights, config, base, where);
  const LayerNames names = layer_names(config);
  for (std::int64_t layer = 0; layer < layers_there_of(config); ++layer) {
    std::map<std::string, std::pair<int, std::vector<HostTensor>>> joined;
    for (const LayerTensor& tensor : layer_tensors(config, names, layer)) {
      auto found = take(tensor.there);
      if (found.empty()) throw IoError(where + ": the tensor " + tensor.there + " is missing");
      if (tensor.axis < 0) {
        result[tensor.here] = std::move(found.mapped());
        continue;
      }
      auto& [axis, parts] = joined[tensor.here];
      axis = tensor.axis;
      check_part(tensor, found.mapped(), parts, where);
      parts.push_back(std::move(found.mapped()));
    }
    for (const auto& [name, each] : joined) result[name] = joined_parts(each.second, each.first);
  }
  for (const auto& [there, here] : layer_ends(config)) {
    if (auto found = take(there); !found.empty()) result[here] = std::move(found.mapped());
  }
  // Older files contain inv_freq, which is not a parameter.
  for (auto& [name, tensor] : weights) {
    if (!name.ends_with("rotary_emb.inv_freq")) result[name] = std::move(tensor);
  }
  return result;
}

Weights layers_there(const Weights& weights, const nn::LanguageModelConfig& config) {
  Weights result;
  const LayerNames names = layer_names(config);
  for (std::int64_t layer = 0; layer < layers_there_of(config); ++layer) {
    std::map<std::string, std::int64_t> begins;  // start of the next part
    for (const LayerTensor& tensor : layer_tensors(config, names, layer)) {
      const HostTensor& whole = weights.at(tensor.here);
      if (tensor.axis < 0) {
        result[tensor.there] = whole;
        continue;
      }
      std::int64_t& begin = begins[tensor.here];
      result[tensor.there] = part_of(whole, tensor.axis, begin, tensor.size);
      begin += tensor.size;
    }
  }
  for (const auto& [there, here] : layer_ends(config)) {
    if (const auto found = weights.find(here); found != weights.end())
      result[there] = found->second;
  }
  return result;
}

// Tensor of a GPT-2 block, which is two layers in tensorgrad. Matrices are those of Conv1D,
// [in, out].
struct Gpt2Tensor {
  const char* there;
  int block;  // 0: layer of attention, 1: layer of the MLP
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
    // Older files contain the causal mask.
    for (const char* mask : {".attn.bias", ".attn.masked_bias"})
      (void)take("transformer.h." + std::to_string(block) + mask);
  }
  for (const auto& [there, here] : kGpt2Ends) {
    if (auto found = take(there); !found.empty()) result[here] = std::move(found.mapped());
  }
  result.merge(weights);  // check_weights() reports unknown tensors
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
bool has_layer(const nn::LanguageModelConfig& config, MixerKind kind) {
  return std::find(config.layers.begin(), config.layers.end(), kind) != config.layers.end();
}
// Returns true if mixers and MLPs alternate, as in Llama, Bamba and Jamba.
bool is_pairs(const nn::LanguageModelConfig& config) {
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const MixerKind kind = config.layers[i];
    const bool is_mlp = kind == MixerKind::kMlp || kind == MixerKind::kMoe;
    if (is_mlp != (i % 2 == 1) || kind == MixerKind::kMamba2Shared) return false;
  }
  return config.layers.size() % 2 == 0 && is_rms(config) && config.mlp == nn::MlpKind::kSwiGlu;
}
bool has_only_mamba(const nn::LanguageModelConfig& config, MixerKind kind) {
  for (const MixerKind other : {MixerKind::kMamba1, MixerKind::kMamba2, MixerKind::kMamba3})
    if (other != kind && has_layer(config, other)) return false;
  return true;
}
bool is_llama(const nn::LanguageModelConfig& config) {
  return is_pairs(config) && has_only_mamba(config, MixerKind::kAttention) &&
         !has_layer(config, MixerKind::kMoe) && config.attention.rope &&
         config.attention.rope_dims == 0;
}
// Returns true for Mamba-2, attention that rotates half of each head, and MLPs.
bool is_bamba(const nn::LanguageModelConfig& config) {
  const bool half =
      config.attention.rope && 2 * config.attention.rope_dims * config.heads == config.d_model;
  return is_pairs(config) && has_only_mamba(config, MixerKind::kMamba2) &&
         !has_layer(config, MixerKind::kMoe) && (half || !has_layer(config, MixerKind::kAttention));
}
// Returns true for Mamba with norms of B, C and dt, attention without positions, MLPs and mixtures
// of experts.
bool is_jamba(const nn::LanguageModelConfig& config) {
  const bool plain = !config.attention.rope && !config.attention.bias;
  const bool norms = config.mamba.b_c_dt_norm_weights;
  return is_pairs(config) && has_only_mamba(config, MixerKind::kMamba1) && !config.mlp_bias &&
         (plain || !has_layer(config, MixerKind::kAttention)) &&
         (norms || !has_layer(config, MixerKind::kMamba1));
}
// Returns true for Mamba-2, some with shared blocks that have adapters.
bool is_zamba2(const nn::LanguageModelConfig& config) {
  const nn::SharedTransformer::Options& o = config.shared;
  const std::int64_t kv_heads = o.attention.kv_heads == 0 ? o.heads : o.attention.kv_heads;
  const auto fits = [](MixerKind kind) {
    return kind == MixerKind::kMamba2 || kind == MixerKind::kMamba2Shared;
  };
  return is_rms(config) && has_layer(config, MixerKind::kMamba2Shared) &&
         std::all_of(config.layers.begin(), config.layers.end(), fits) && o.adapter_rank > 0 &&
         config.mamba2.conv_bias && config.mamba2.bias == o.mlp_bias && !o.attention.bias &&
         o.attention.rope_dims == 0 && (!o.attention_adapters || kv_heads == o.heads);
}
bool is_gpt2(const nn::LanguageModelConfig& config) {
  const nn::CausalAttention::Options& o = config.attention;
  return config.norm == nn::NormKind::kLayerNorm && config.n_positions > 0 &&
         config.mlp == nn::MlpKind::kGelu && !o.rope && o.bias &&
         (o.kv_heads == 0 || o.kv_heads == config.heads);
}

bool has_layer_tensors(const std::optional<Architecture>& kind) {
  return kind == Architecture::kLlama || kind == Architecture::kBamba ||
         kind == Architecture::kJamba || kind == Architecture::kZamba2;
}

}  // namespace

std::int64_t kv_heads_of(const nn::LanguageModelConfig& config) {
  return config.attention.kv_heads == 0 ? config.heads : config.attention.kv_heads;
}

std::optional<Architecture> architecture_of(const nn::LanguageModelConfig& config) {
  const std::vector<MixerKind>& layers = config.layers;
  const auto all = [&](MixerKind kind) {
    return std::all_of(layers.begin(), layers.end(), [&](MixerKind each) { return each == kind; });
  };
  if (!config.layer_options.empty()) return std::nullopt;
  if (all(MixerKind::kMamba1) && is_rms(config) && !config.mamba.b_c_dt_norm_weights)
    return Architecture::kMamba;
  if (all(MixerKind::kMamba2) && is_rms(config)) return Architecture::kMamba2;
  if (is_llama(config)) return Architecture::kLlama;
  if (is_bamba(config)) return Architecture::kBamba;
  if (is_jamba(config)) return Architecture::kJamba;
  if (is_zamba2(config)) return Architecture::kZamba2;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] != (i % 2 == 0 ? MixerKind::kAttention : MixerKind::kMlp)) return std::nullopt;
  }
  return layers.size() % 2 == 0 && is_gpt2(config) ? std::optional(Architecture::kGpt2)
                                                   : std::nullopt;
}

Weights weights_here(Weights weights, const nn::LanguageModelConfig& config,
                     const std::string& where) {
  const std::optional<Architecture> kind = architecture_of(config);
  if (has_layer_tensors(kind)) return layers_here(std::move(weights), config, where);
  if (kind == Architecture::kGpt2) return gpt2_here(std::move(weights), config, where);
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
  const std::optional<Architecture> kind = architecture_of(config);
  if (has_layer_tensors(kind)) return layers_there(weights, config);
  if (kind == Architecture::kGpt2) return gpt2_there(weights, config);
  Weights result = weights;
  auto table = result.extract("backbone.embedding.weight");
  table.key() = "backbone.embeddings.weight";
  result.insert(std::move(table));
  return result;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
