// SPDX-License-Identifier: MIT
// Conversion between language models and GGUF files of llama.cpp. Names of tensors and keys are
// those of its gguf-py/gguf/constants.py. In identifiers, `here` means tensorgrad and `there`
// llama.cpp.
#include "tensorgrad/lm/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include "base/half.h"
#include "lm/gguf_fields.h"
#include "lm/gguf_tokenizer.h"
#include "lm/pretrained_names.h"
#include "tensorgrad/error.h"
#include "tensorgrad/lm/quantize.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

using nn::MixerKind;

constexpr std::int64_t kLargestGguf = std::int64_t{1} << 30;  // largest size
constexpr std::int64_t kGgufBlock = 32;                       // elements per block of Q8_0 and Q4_0
constexpr std::uint32_t kEndlessContext = 1 << 20;  // for Mamba, as in llama.cpp's converter
constexpr double kUsualRopeBase = 10000;            // default of llama.cpp
constexpr const char* kGgufEmbedding = "token_embd.weight";
constexpr const char* kGgufHead = "output.weight";

// How a tensor in llama.cpp differs from that in tensorgrad.
enum class Change : std::uint8_t {
  kNone,
  kPart,    // some rows of a matrix; its parts are in the order of the table
  kRotary,  // kPart, with the two halves of each head interleaved
  kDecay,   // -exp(A_log), not A_log; [H, 1] in Mamba-2
  kTaps,    // [C, K], not [C, 1, K]
  kColumn,  // [H, 1], not [H]
  kGroups,  // [G, D / G], not [D]
  kZeros,   // zeros if tensorgrad has no such tensor, else kNone
};

struct GgufTensor {
  const char* there;
  int layer;  // index of the layer within its block
  const char* here;
  Change change = Change::kNone;
};

constexpr GgufTensor kLlamaBlock[] = {
    {"attn_norm.weight", 0, "norm.weight"},
    {"attn_q.weight", 0, "mixer.in_proj.weight", Change::kRotary},
    {"attn_k.weight", 0, "mixer.in_proj.weight", Change::kRotary},
    {"attn_v.weight", 0, "mixer.in_proj.weight", Change::kPart},
    {"attn_output.weight", 0, "mixer.out_proj.weight"},
    {"ffn_norm.weight", 1, "norm.weight"},
    {"ffn_gate.weight", 1, "mixer.fc1.weight", Change::kPart},
    {"ffn_up.weight", 1, "mixer.fc1.weight", Change::kPart},
    {"ffn_down.weight", 1, "mixer.fc2.weight"},
};
constexpr GgufTensor kGpt2Block[] = {
    {"attn_norm.weight", 0, "norm.weight"},
    {"attn_norm.bias", 0, "norm.bias"},
    {"attn_qkv.weight", 0, "mixer.in_proj.weight"},
    {"attn_qkv.bias", 0, "mixer.in_proj.bias"},
    {"attn_output.weight", 0, "mixer.out_proj.weight"},
    {"attn_output.bias", 0, "mixer.out_proj.bias"},
    {"ffn_norm.weight", 1, "norm.weight"},
    {"ffn_norm.bias", 1, "norm.bias"},
    {"ffn_up.weight", 1, "mixer.fc1.weight"},
    {"ffn_up.bias", 1, "mixer.fc1.bias"},
    {"ffn_down.weight", 1, "mixer.fc2.weight"},
    {"ffn_down.bias", 1, "mixer.fc2.bias"},
};
constexpr GgufTensor kMambaBlock[] = {
    {"attn_norm.weight", 0, "norm.weight"},
    {"ssm_in.weight", 0, "mixer.in_proj.weight"},
    {"ssm_conv1d.weight", 0, "mixer.conv1d.weight", Change::kTaps},
    {"ssm_conv1d.bias", 0, "mixer.conv1d.bias", Change::kZeros},
    {"ssm_x.weight", 0, "mixer.x_proj.weight"},
    {"ssm_dt.weight", 0, "mixer.dt_proj.weight"},
    {"ssm_dt.bias", 0, "mixer.dt_proj.bias"},
    {"ssm_a", 0, "mixer.A_log", Change::kDecay},
    {"ssm_d", 0, "mixer.D"},
    {"ssm_out.weight", 0, "mixer.out_proj.weight"},
};
constexpr GgufTensor kMamba2Block[] = {
    {"attn_norm.weight", 0, "norm.weight"},
    {"ssm_in.weight", 0, "mixer.in_proj.weight"},
    {"ssm_conv1d.weight", 0, "mixer.conv1d.weight", Change::kTaps},
    {"ssm_conv1d.bias", 0, "mixer.conv1d.bias", Change::kZeros},
    {"ssm_dt.bias", 0, "mixer.dt_bias"},
    {"ssm_a", 0, "mixer.A_log", Change::kDecay},
    {"ssm_d", 0, "mixer.D", Change::kColumn},
    {"ssm_norm.weight", 0, "mixer.norm.weight", Change::kGroups},
    {"ssm_out.weight", 0, "mixer.out_proj.weight"},
};
constexpr GgufTensor kGgufEnds[] = {
    {kGgufEmbedding, 0, "backbone.embedding.weight"},
    {"position_embd.weight", 0, "backbone.position_embedding.weight"},
    {"output_norm.weight", 0, "backbone.norm_f.weight"},
    {"output_norm.bias", 0, "backbone.norm_f.bias"},
    {kGgufHead, 0, "lm_head.weight"},
};

std::span<const GgufTensor> block_of(Architecture kind) {
  switch (kind) {
    case Architecture::kLlama: return kLlamaBlock;
    case Architecture::kGpt2: return kGpt2Block;
    case Architecture::kMamba: return kMambaBlock;
    case Architecture::kMamba2:
    case Architecture::kBamba:
    case Architecture::kJamba:
    case Architecture::kZamba2: break;
  }
  return kMamba2Block;
}
std::int64_t layers_of_block(Architecture kind) {
  return kind == Architecture::kLlama || kind == Architecture::kGpt2 ? 2 : 1;
}
const char* name_of(Architecture kind) {
  switch (kind) {
    case Architecture::kLlama: return "llama";
    case Architecture::kGpt2: return "gpt2";
    case Architecture::kMamba: return "mamba";
    case Architecture::kMamba2:
    case Architecture::kBamba:
    case Architecture::kJamba:
    case Architecture::kZamba2: break;
  }
  return "mamba2";
}

std::string gguf_here(const GgufTensor& tensor, Architecture kind, std::int64_t block) {
  return "backbone.layers." + std::to_string(layers_of_block(kind) * block + tensor.layer) + "." +
         tensor.here;
}
std::string gguf_there(const GgufTensor& tensor, std::int64_t block) {
  return "blk." + std::to_string(block) + "." + tensor.there;
}

// Returns the number of heads in a tensor with Change::kRotary.
std::int64_t rotary_heads(const GgufTensor& tensor, const nn::LanguageModelConfig& config) {
  return std::string_view(tensor.there).starts_with("attn_k") ? kv_heads_of(config) : config.heads;
}
// Returns the number of rows of a part of a joined matrix.
std::int64_t part_rows(const GgufTensor& tensor, const nn::LanguageModelConfig& config) {
  const std::string_view name = tensor.there;
  if (name.starts_with("ffn")) return config.mlp_width;
  return config.d_model / config.heads *
         (name.starts_with("attn_q") ? config.heads : kv_heads_of(config));
}

// Reorders the rows of a matrix. Rotary embeddings rotate pairs of rows of a head with n rows:
// i and i + n / 2 in tensorgrad, 2 i and 2 i + 1 in llama.cpp.
template <class T>
std::vector<T> turned_rows(std::span<const T> rows, std::int64_t heads, std::int64_t count,
                           bool to_there) {
  const std::size_t width = rows.size() / static_cast<std::size_t>(count);
  const std::int64_t size = count / heads;
  std::vector<T> out(rows.size());
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t head = row / size, i = row % size;
    const std::int64_t pair = head * size + (i < size / 2 ? 2 * i : 2 * (i - size / 2) + 1);
    const auto from = static_cast<std::size_t>(to_there ? row : pair);
    const auto to = static_cast<std::size_t>(to_there ? pair : row);
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(from * width), width,
                out.begin() + static_cast<std::ptrdiff_t>(to * width));
  }
  return out;
}

// --- writing ---

[[noreturn]] void refuse_gguf(const std::string& what) { throw UserError("gguf_file: " + what); }

StoredTensor plain_tensor(const HostTensor& tensor) { return {"F32", tensor.shape, tensor.bytes}; }

void append_half(std::vector<std::byte>& out, float value) {
  const std::uint16_t bits = to_half(value);
  const auto bytes = std::as_bytes(std::span(&bits, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// Returns true if a scale is in the range of normal f16 numbers.
bool is_normal_half(float value) { return value >= 0x1p-14F && value < 65504.0F; }

// Converts 8-bit or 4-bit integers to blocks of 32 with an f16 scale. Returns nullopt if the rows
// are not a multiple of 32 elements or a scale is out of range.
std::optional<StoredTensor> integer_blocks(const nn::QuantizedTensor& matrix,
                                           nn::WeightFormat format) {
  const bool four = format == nn::WeightFormat::kInt4;
  const std::int64_t rows = matrix.data.shape[0];
  const std::int64_t columns = matrix.data.shape[1] * (four ? 8 : 4);
  const std::span<const float> scales = matrix.scale->float_span();
  if (columns % kGgufBlock != 0 || !std::all_of(scales.begin(), scales.end(), is_normal_half))
    return std::nullopt;
  const auto blocks = static_cast<std::size_t>(rows * columns / kGgufBlock);
  const std::size_t per_scale = blocks / scales.size();
  const std::size_t bytes = four ? kGgufBlock / 2 : kGgufBlock;
  StoredTensor made{four ? "Q4_0" : "Q8_0", {rows, columns}, {}};
  made.data.reserve(blocks * (bytes + sizeof(std::uint16_t)));
  for (std::size_t block = 0; block < blocks; ++block) {
    append_half(made.data, scales[block / per_scale]);
    const std::span given = std::span(matrix.data.bytes).subspan(block * bytes, bytes);
    if (!four) {
      made.data.insert(made.data.end(), given.begin(), given.end());
      continue;
    }
    // A byte holds elements 2 i and 2 i + 1 in tensorgrad, i and i + 16 in Q4_0. Values of Q4_0
    // have an offset of 8.
    const auto element = [&](std::size_t i) {
      const auto both = std::to_integer<unsigned>(given[i / 2]);
      return ((i % 2 == 0 ? both : both >> 4) & 15U) ^ 8U;
    };
    for (std::size_t i = 0; i < bytes; ++i)
      made.data.push_back(static_cast<std::byte>(element(i) | element(i + bytes) << 4));
  }
  return made;
}

// Returns a weight in the format to write. Its shape and order of rows are those of tensorgrad.
StoredTensor written_tensor(const SavedModel& model, const std::string& name) {
  if (const auto plain = model.weights.find(name); plain != model.weights.end())
    return plain_tensor(plain->second);
  const nn::WeightFormat format = model.config.weight_format;
  nn::QuantizedTensor matrix{model.weights.at(name + ".data"), std::nullopt};
  const auto scale = model.weights.find(name + ".scale");
  if (scale != model.weights.end()) matrix.scale = scale->second;
  if (format == nn::WeightFormat::kF16)
    return {"F16", matrix.data.shape, std::move(matrix.data.bytes)};
  if (format == nn::WeightFormat::kBf16) {
    return {"BF16", {matrix.data.shape[0], 2 * matrix.data.shape[1]}, std::move(matrix.data.bytes)};
  }
  if (auto blocks = integer_blocks(matrix, format)) return std::move(*blocks);
  return plain_tensor(nn::dequantize_weight(matrix, format));
}

std::vector<float> floats_of(const StoredTensor& tensor) {
  std::vector<float> values(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

void add_block(const SavedModel& model, const nn::LanguageModelConfig& config, Architecture kind,
               std::int64_t block, GgufFile& out) {
  std::map<std::string, std::size_t> begins;  // offset of the next part, in bytes
  for (const GgufTensor& tensor : block_of(kind)) {
    const std::string here = gguf_here(tensor, kind, block);
    StoredTensor& made = out.tensors[gguf_there(tensor, block)];
    if (tensor.change == Change::kZeros && !model.weights.contains(here)) {
      const std::string taps = here.substr(0, here.rfind('.')) + ".weight";
      const std::int64_t channels = model.weights.at(taps).shape[0];
      made = {"F32", {channels}, std::vector<std::byte>(static_cast<std::size_t>(channels) * 4)};
      continue;
    }
    made = written_tensor(model, here);
    switch (tensor.change) {
      case Change::kNone:
      case Change::kZeros: break;
      case Change::kTaps: made.shape = {made.shape[0], made.shape[2]}; break;
      case Change::kColumn: made.shape.push_back(1); break;
      case Change::kGroups:
        made.shape = {config.mamba2.groups, made.shape[0] / config.mamba2.groups};
        break;
      case Change::kDecay: {
        std::vector<float> values = floats_of(made);
        for (float& value : values) value = -std::exp(value);
        std::memcpy(made.data.data(), values.data(), made.data.size());
        if (kind == Architecture::kMamba2) made.shape.push_back(1);
        break;
      }
      case Change::kPart:
      case Change::kRotary: {
        const std::int64_t rows = part_rows(tensor, config);
        const std::size_t width = made.data.size() / static_cast<std::size_t>(made.shape[0]);
        const std::size_t size = static_cast<std::size_t>(rows) * width;
        std::size_t& begin = begins[here];
        const std::span<const std::byte> part = std::span(made.data).subspan(begin, size);
        begin += size;
        made.shape[0] = rows;
        made.data = tensor.change == Change::kRotary
                        ? turned_rows(part, rotary_heads(tensor, config), rows, true)
                        : std::vector(part.begin(), part.end());
        break;
      }
    }
  }
}

std::uint32_t u32_of(std::int64_t value, const char* what) {
  if (std::in_range<std::uint32_t>(value)) return static_cast<std::uint32_t>(value);
  refuse_gguf(std::string(what) + " is too large: " + std::to_string(value));
}

void check_mamba_out(const nn::LanguageModelConfig& config) {
  const nn::MambaOptions& o = config.mamba;
  if (o.discretization != Discretization::kEuler)
    refuse_gguf("llama.cpp has no Mamba layers with zero-order hold");
  if (o.x_bias || o.bias) refuse_gguf("llama.cpp has no biases of projections in Mamba layers");
  if (o.expand != 2)
    refuse_gguf("llama.cpp has only Mamba layers that expand by 2, got " +
                std::to_string(o.expand));
  if (o.b_c_dt_norm && o.norm_epsilon != config.norm_epsilon) {
    refuse_gguf(
        "llama.cpp has one epsilon for all norms of Falcon-Mamba; the norms of B, C and dt have "
        "another one");
  }
}

void check_mamba2_out(const nn::LanguageModelConfig& config) {
  const nn::Mamba2Options& o = config.mamba2;
  if (o.bias) refuse_gguf("llama.cpp has no biases of projections in Mamba-2 layers");
  if (o.dt_limit_min > 0 || o.dt_limit_max > 0)
    refuse_gguf("llama.cpp has no limits of dt in Mamba-2 layers");
  if (o.norm_epsilon != config.norm_epsilon)
    refuse_gguf("llama.cpp has one epsilon for all norms of Mamba-2");
}

std::uint32_t file_type_of(nn::WeightFormat format) {
  switch (format) {  // llama.cpp's enum llama_ftype
    case nn::WeightFormat::kF32: return 0;
    case nn::WeightFormat::kF16: return 1;
    case nn::WeightFormat::kBf16: return 32;
    case nn::WeightFormat::kInt4: return 2;
    case nn::WeightFormat::kInt8:
    case nn::WeightFormat::kInt8PerTensor: break;
  }
  return 7;
}

GgufMetadata metadata_of(const nn::LanguageModelConfig& config, Architecture kind) {
  GgufMetadata out;
  const std::string arch = name_of(kind);
  const auto size = [&](const char* key, std::int64_t value) {
    out[arch + "." + key] = u32_of(value, key);
  };
  out["general.architecture"] = arch;
  out["general.file_type"] = file_type_of(config.weight_format);
  out["general.quantization_version"] = std::uint32_t{2};  // version of the block layout
  size("vocab_size", config.vocab_size);
  size("embedding_length", config.d_model);
  size("block_count", config.n_layer / layers_of_block(kind));
  const auto epsilon = static_cast<float>(config.norm_epsilon);
  out[arch + (kind == Architecture::kGpt2 ? ".attention.layer_norm_epsilon"
                                          : ".attention.layer_norm_rms_epsilon")] = epsilon;
  if (kind == Architecture::kLlama || kind == Architecture::kGpt2) {
    size("context_length",
         kind == Architecture::kGpt2 ? config.n_positions : config.attention.max_length);
    size("feed_forward_length", config.mlp_width);
    size("attention.head_count", config.heads);
    size("attention.head_count_kv", kv_heads_of(config));
    if (kind == Architecture::kGpt2) return out;
    size("rope.dimension_count", config.d_model / config.heads);
    out[arch + ".rope.freq_base"] = static_cast<float>(config.attention.rope_base);
    return out;
  }
  size("context_length", kEndlessContext);
  size("feed_forward_length", 0);
  size("attention.head_count", 0);
  if (kind == Architecture::kMamba) {
    const nn::MambaOptions& o = config.mamba;
    size("ssm.conv_kernel", o.d_conv);
    size("ssm.inner_size", o.expand * config.d_model);
    size("ssm.state_size", o.d_state);
    size("ssm.time_step_rank", o.dt_rank > 0 ? o.dt_rank : (config.d_model + 15) / 16);
    out[arch + ".ssm.dt_b_c_rms"] = o.b_c_dt_norm;
  } else {
    const nn::Mamba2Options& o = config.mamba2;
    size("ssm.conv_kernel", o.d_conv);
    size("ssm.inner_size", o.expand * config.d_model);
    size("ssm.state_size", o.d_state);
    size("ssm.time_step_rank", o.expand * config.d_model / o.head_dim);  // the number of heads
    size("ssm.group_count", o.groups);
  }
  return out;
}

// --- reading ---

class GgufModel {
 public:
  GgufModel(const GgufFile& file, std::string name)
      : file_(file), name_(std::move(name)), tensors_left_(file.tensors.size()) {
    const GgufFields general(file.metadata, name_, "general.");
    const std::string& arch = general.text("architecture");
    bool found = false;
    for (const Architecture kind :
         {Architecture::kLlama, Architecture::kGpt2, Architecture::kMamba, Architecture::kMamba2}) {
      if (arch != name_of(kind)) continue;
      kind_ = kind;
      found = true;
    }
    if (!found) {
      general.fail("architecture",
                   "expected llama, gpt2, mamba or mamba2, got \"" + arch.substr(0, 40) + "\"");
    }
  }

  SavedModel read(const PretrainedOptions& options) {
    SavedModel model;
    nn::LanguageModelConfig& config = model.config;
    read_config(config);
    if (options.context > 0)
      config.attention.max_length = std::min(config.attention.max_length, options.context);
    for (std::int64_t block = 0; block < config.n_layer / layers_of_block(kind_); ++block)
      read_block(block, model);
    for (const GgufTensor& tensor : kGgufEnds) {
      const bool there = file_.tensors.contains(tensor.there);
      if (there) model.weights[tensor.here] = host_tensor(tensor.there);
    }
    check_all_taken(config);
    check_weights(config, model.weights, name_);
    return model;
  }

 private:
  [[noreturn]] void fail(const std::string& tensor, const std::string& what) const {
    throw IoError(name_ + ": tensor " + tensor + ": " + what);
  }
  [[nodiscard]] const StoredTensor& stored(const std::string& name) const {
    const auto found = file_.tensors.find(name);
    if (found == file_.tensors.end()) throw IoError(name_ + ": the tensor " + name + " is missing");
    return found->second;
  }
  HostTensor host_tensor(const std::string& name) {
    const StoredTensor& tensor = stored(name);
    --tensors_left_;
    const std::vector<float> values = gguf_floats(name_, name, tensor);
    const auto bad =
        std::find_if_not(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
    if (bad != values.end())
      fail(name, "element " + std::to_string(bad - values.begin()) + " is not finite");
    return HostTensor::from(tensor.shape, values);
  }
  // Throws IoError if a tensor does not have `rank` axes.
  void demand_rank(const std::string& name, const HostTensor& tensor, std::size_t rank) const {
    if (tensor.shape.size() == rank) return;
    fail(name, "expected " + std::to_string(rank) + " axes, got f32" +
                   tensorgrad::to_string(tensor.shape));
  }

  void read_block(std::int64_t block, SavedModel& model) {
    for (const GgufTensor& tensor : block_of(kind_)) {
      const std::string name = gguf_there(tensor, block);
      const std::string here = gguf_here(tensor, kind_, block);
      HostTensor read = host_tensor(name);
      switch (tensor.change) {
        case Change::kNone:
        case Change::kZeros: break;
        case Change::kTaps:
          demand_rank(name, read, 2);
          read.shape = {read.shape[0], 1, read.shape[1]};
          break;
        case Change::kColumn:
        case Change::kGroups: read.shape = {numel(read.shape)}; break;
        case Change::kDecay: read = logarithms(name, read); break;
        case Change::kPart:
        case Change::kRotary: join(tensor, name, read, model, here); continue;
      }
      model.weights[here] = std::move(read);
    }
  }

  HostTensor logarithms(const std::string& name, const HostTensor& decays) const {
    std::vector<float> values = decays.floats();
    for (float& value : values) {
      if (value >= 0) fail(name, "expected values below 0, got " + std::to_string(value));
      value = std::log(-value);
    }
    Shape shape = decays.shape;
    if (kind_ == Architecture::kMamba2) shape = {numel(shape)};
    return HostTensor::from(shape, values);
  }

  // Appends a part to a joined matrix.
  void join(const GgufTensor& tensor, const std::string& name, HostTensor& part, SavedModel& model,
            const std::string& here) const {
    demand_rank(name, part, 2);
    const Shape expected = {part_rows(tensor, model.config), model.config.d_model};
    if (part.shape != expected) {
      fail(name, "expected " + tensorgrad::to_string(expected) + ", got " +
                     tensorgrad::to_string(part.shape));
    }
    if (tensor.change == Change::kRotary) {
      part = HostTensor::from(
          expected,
          turned_rows(part.float_span(), rotary_heads(tensor, model.config), expected[0], false));
    }
    auto [joined, fresh] = model.weights.try_emplace(here, part);
    if (fresh) return;
    HostTensor& whole = joined->second;
    whole.shape[0] += part.shape[0];
    whole.bytes.insert(whole.bytes.end(), part.bytes.begin(), part.bytes.end());
  }

  // Throws IoError if a tensor is unknown, since the logits could not be those of llama.cpp.
  void check_all_taken(const nn::LanguageModelConfig& config) const {
    if (tensors_left_ == 0) return;
    std::set<std::string> known;
    for (std::int64_t block = 0; block < config.n_layer / layers_of_block(kind_); ++block) {
      for (const GgufTensor& tensor : block_of(kind_)) known.insert(gguf_there(tensor, block));
    }
    for (const GgufTensor& tensor : kGgufEnds) known.emplace(tensor.there);
    for (const auto& [name, tensor] : file_.tensors) {
      if (known.contains(name)) continue;
      fail(name, "models of the architecture " + std::string(name_of(kind_)) +
                     " here have no such tensor");
    }
  }

  void read_config(nn::LanguageModelConfig& config) const {
    const GgufFields in(file_.metadata, name_, std::string(name_of(kind_)) + ".");
    const auto blocks =
        in.integer("block_count", 1, static_cast<std::int64_t>(file_.tensors.size()));
    config.d_model = in.integer("embedding_length", 1, kLargestGguf);
    const StoredTensor& table = stored(kGgufEmbedding);
    if (table.shape.size() != 2 || table.shape[0] < 1)
      fail(kGgufEmbedding, "expected a matrix, got " + tensorgrad::to_string(table.shape));
    config.vocab_size = table.shape[0];
    config.tie_embeddings = !file_.tensors.contains(kGgufHead);
    config.norm_epsilon =
        in.number(kind_ == Architecture::kGpt2 ? "attention.layer_norm_epsilon"
                                               : "attention.layer_norm_rms_epsilon");
    switch (kind_) {
      case Architecture::kLlama: read_llama(in, blocks, config); break;
      case Architecture::kGpt2: read_gpt2(in, blocks, config); break;
      case Architecture::kMamba: read_mamba(in, config); break;
      case Architecture::kMamba2: read_mamba2(in, config); break;
      case Architecture::kBamba:
      case Architecture::kJamba:
      case Architecture::kZamba2: break;  // rejected by the constructor
    }
    config.n_layer = blocks * layers_of_block(kind_);
    if (!config.layers.empty()) return;
    config.layers.assign(static_cast<std::size_t>(blocks),
                         kind_ == Architecture::kMamba ? MixerKind::kMamba1 : MixerKind::kMamba2);
  }

  static std::int64_t heads_in(const GgufFields& in, const nn::LanguageModelConfig& config) {
    const std::int64_t heads = in.integer("attention.head_count", 1, kLargestGguf);
    if (config.d_model % heads != 0)
      in.fail("attention.head_count", "expected a divisor of embedding_length");
    return heads;
  }
  static void only(const GgufFields& in, const char* key, std::int64_t value) {
    if (in.has(key)) (void)in.integer(key, value, value);
  }

  static void read_llama(const GgufFields& in, std::int64_t blocks,
                         nn::LanguageModelConfig& config) {
    in.known({"block_count", "context_length", "embedding_length", "vocab_size",
              "feed_forward_length", "attention.head_count", "attention.head_count_kv",
              "attention.layer_norm_rms_epsilon", "attention.key_length", "attention.value_length",
              "rope.dimension_count", "rope.freq_base", "rope.scaling.type", "expert_count",
              "expert_used_count"});
    for (std::int64_t i = 0; i < blocks; ++i)
      config.layers.insert(config.layers.end(), {MixerKind::kAttention, MixerKind::kMlp});
    config.heads = heads_in(in, config);
    config.mlp_width = in.integer("feed_forward_length", 1, kLargestGguf);
    auto& attention = config.attention;
    attention.kv_heads = in.has("attention.head_count_kv")
                             ? in.integer("attention.head_count_kv", 1, config.heads)
                             : config.heads;
    if (config.heads % attention.kv_heads != 0)
      in.fail("attention.head_count_kv", "expected a divisor of attention.head_count");
    attention.max_length = in.integer("context_length", 1, kLargestGguf);
    const std::int64_t head = config.d_model / config.heads;
    if (head % 2 != 0) in.fail("attention.head_count", "expected heads of an even size");
    for (const char* key :
         {"attention.key_length", "attention.value_length", "rope.dimension_count"})
      only(in, key, head);
    only(in, "expert_count", 0);
    only(in, "expert_used_count", 0);
    if (in.has("rope.scaling.type") && in.text("rope.scaling.type") != "none")
      in.fail("rope.scaling.type", "scaled rotary embeddings are not supported");
    attention.rope_base = in.has("rope.freq_base") ? in.number("rope.freq_base") : kUsualRopeBase;
    if (attention.rope_base <= 0) in.fail("rope.freq_base", "expected a number above 0");
  }

  void read_gpt2(const GgufFields& in, std::int64_t blocks, nn::LanguageModelConfig& config) const {
    in.known({"block_count", "context_length", "embedding_length", "vocab_size",
              "feed_forward_length", "attention.head_count", "attention.head_count_kv",
              "attention.layer_norm_epsilon"});
    const std::int64_t heads = heads_in(in, config);
    only(in, "attention.head_count_kv", heads);
    const nn::LanguageModelConfig read = config;
    config = nn::gpt2_config(read.vocab_size, read.d_model, blocks, heads,
                             in.integer("context_length", 1, kLargestGguf));
    config.tie_embeddings = read.tie_embeddings;
    config.norm_epsilon = read.norm_epsilon;
    config.mlp_width = in.integer("feed_forward_length", 1, kLargestGguf);
  }

  // Returns the ratio of the inner size of Mamba layers to the width, an integer.
  static std::int64_t expansion_in(const GgufFields& in, const nn::LanguageModelConfig& config) {
    const std::int64_t inner = in.integer("ssm.inner_size", 1, kLargestGguf);
    if (inner % config.d_model != 0)
      in.fail("ssm.inner_size", "expected a multiple of embedding_length");
    return inner / config.d_model;
  }

  static void read_mamba(const GgufFields& in, nn::LanguageModelConfig& config) {
    in.known({"block_count", "context_length", "embedding_length", "vocab_size",
              "feed_forward_length", "attention.head_count", "attention.head_count_kv",
              "attention.layer_norm_rms_epsilon", "ssm.conv_kernel", "ssm.inner_size",
              "ssm.state_size", "ssm.time_step_rank", "ssm.dt_b_c_rms"});
    nn::MambaOptions& o = config.mamba;
    o.expand = expansion_in(in, config);
    o.d_conv = in.integer("ssm.conv_kernel", 2, kLargestGguf);
    o.d_state = in.integer("ssm.state_size", 1, kLargestGguf);
    o.dt_rank = in.integer("ssm.time_step_rank", 1, kLargestGguf);
    o.b_c_dt_norm = in.boolean_or("ssm.dt_b_c_rms", false);
    o.norm_epsilon = config.norm_epsilon;
  }

  static void read_mamba2(const GgufFields& in, nn::LanguageModelConfig& config) {
    in.known({"block_count", "context_length", "embedding_length", "vocab_size",
              "feed_forward_length", "attention.head_count", "attention.head_count_kv",
              "attention.layer_norm_rms_epsilon", "ssm.conv_kernel", "ssm.inner_size",
              "ssm.state_size", "ssm.time_step_rank", "ssm.group_count"});
    nn::Mamba2Options& o = config.mamba2;
    o.expand = expansion_in(in, config);
    o.d_conv = in.integer("ssm.conv_kernel", 2, kLargestGguf);
    o.d_state = in.integer("ssm.state_size", 1, kLargestGguf);
    o.groups = in.integer("ssm.group_count", 1, kLargestGguf);
    const std::int64_t heads = in.integer("ssm.time_step_rank", 1, kLargestGguf);
    const std::int64_t inner = o.expand * config.d_model;
    if (inner % heads != 0) in.fail("ssm.time_step_rank", "expected a divisor of ssm.inner_size");
    if (heads % o.groups != 0) in.fail("ssm.group_count", "expected a divisor of the heads");
    o.head_dim = inner / heads;
    o.norm_epsilon = config.norm_epsilon;
  }

  const GgufFile& file_;
  std::string name_;
  std::size_t tensors_left_;
  Architecture kind_ = Architecture::kLlama;
};

// Returns the ids that end a text, without those beyond the vocabulary.
std::vector<std::int32_t> gguf_eos_ids(const GgufMetadata& metadata, const std::string& name,
                                       std::int64_t vocab_size) {
  const GgufFields in(metadata, name, "tokenizer.ggml.");
  std::vector<std::int32_t> ids;
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    if (!in.has(key)) continue;
    const std::int64_t id = in.integer(key, 0, UINT32_MAX);
    if (id >= vocab_size) continue;
    const auto found = static_cast<std::int32_t>(id);
    if (std::find(ids.begin(), ids.end(), found) == ids.end()) ids.push_back(found);
  }
  return ids;
}

}  // namespace

SavedModel load_gguf(const FileSource& source, const PretrainedOptions& options) {
  const GgufFile file = read_gguf(source);
  SavedModel model = GgufModel(file, source.name()).read(options);
  model.eos_ids = gguf_eos_ids(file.metadata, source.name(), model.config.vocab_size);
  if (options.tokenizer) model.tokenizer = gguf_tokenizer(file.metadata, source.name());
  if (model.tokenizer && model.tokenizer->vocab_size() > model.config.vocab_size) {
    throw IoError(
        source.name() + ": the tokenizer has " + std::to_string(model.tokenizer->vocab_size()) +
        " tokens, but the embedding has " + std::to_string(model.config.vocab_size) + " rows");
  }
  return model;
}

GgufFile gguf_file(const SavedModel& model) {
  check_weights(model.config, model.weights, "gguf_file");
  nn::LanguageModelConfig config = model.config;
  if (config.layers.empty()) config.layers.assign(static_cast<std::size_t>(config.n_layer), {});
  const std::optional<Architecture> kind = architecture_of(config);
  if (!kind || kind == Architecture::kBamba || kind == Architecture::kJamba ||
      kind == Architecture::kZamba2) {
    refuse_gguf(
        "llama.cpp has no model with these layers and options; expected only Mamba, only Mamba-2, "
        "or attention and MLPs in turn as in Llama or GPT-2");
  }
  if (kind == Architecture::kLlama && (config.attention.bias || config.mlp_bias))
    refuse_gguf("models of Llama with biases of attention or MLPs are not supported");
  if (kind == Architecture::kMamba) check_mamba_out(config);
  if (kind == Architecture::kMamba2) check_mamba2_out(config);
  if (layers_of_block(*kind) == 2) {
    const std::string width = "backbone.layers.1.mixer.fc1.weight";
    const auto plain = model.weights.find(width);
    const HostTensor& matrix =
        plain != model.weights.end() ? plain->second : model.weights.at(width + ".data");
    config.mlp_width = matrix.shape[0] / (kind == Architecture::kLlama ? 2 : 1);
  }
  GgufFile file;
  file.metadata = metadata_of(config, *kind);
  for (std::int64_t block = 0; block < config.n_layer / layers_of_block(*kind); ++block)
    add_block(model, config, *kind, block, file);
  for (const GgufTensor& tensor : kGgufEnds) {
    if (model.weights.contains(tensor.here) ||
        model.weights.contains(std::string(tensor.here) + ".data")) {
      file.tensors[tensor.there] = written_tensor(model, tensor.here);
    }
  }
  add_gguf_tokenizer(model, file.metadata);
  return file;
}

void save_gguf(const FileSink& sink, const SavedModel& model) {
  write_gguf(sink, gguf_file(model));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
