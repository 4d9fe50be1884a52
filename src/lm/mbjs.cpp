// SPDX-License-Identifier: MIT
// Conversion between Mamba-1 models and MBJS files. Sizes: V tokens, M d_model, D inner channels,
// K taps, N states, R rank of dt.
#include "tensorgrad/lm/mbjs.h"

#include <algorithm>
#include <array>

#include "tensorgrad/error.h"
#include "tensorgrad/lm/quantize.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

// Tensors of a layer, in the order of the file.
enum MbjsTensor : std::size_t {
  kInWeight,
  kInBias,
  kConvWeight,
  kConvBias,
  kXWeight,
  kXBias,
  kDtWeight,
  kDtBias,
  kALog,
  kSkip,
  kOutWeight,
  kOutBias,
  kNorm,
  kTensorsOfLayer
};
// Names in mambacode.js and in tensorgrad. Models in tensorgrad may lack a bias.
constexpr std::array<std::array<const char*, 2>, kTensorsOfLayer> kMbjsNames = {{
    {"wInProj", "mixer.in_proj.weight"},
    {"bInProj", "mixer.in_proj.bias"},
    {"wConv", "mixer.conv1d.weight"},
    {"bConv", "mixer.conv1d.bias"},
    {"wXProj", "mixer.x_proj.weight"},
    {"bXProj", "mixer.x_proj.bias"},
    {"wDtProj", "mixer.dt_proj.weight"},
    {"bDtProj", "mixer.dt_proj.bias"},
    {"A_log", "mixer.A_log"},
    {"D_vec", "mixer.D"},
    {"wOutProj", "mixer.out_proj.weight"},
    {"bOutProj", "mixer.out_proj.bias"},
    {"normWeight", "norm.weight"},
}};

std::string layer_prefix(std::size_t layer) {
  return "backbone.layers." + std::to_string(layer) + ".";
}

// Returns true if the tensor is a bias that the model lacks. It is zero in the file.
bool is_left_out(std::size_t tensor, const nn::MambaOptions& mamba) {
  switch (tensor) {
    case kInBias:
    case kOutBias: return !mamba.bias;
    case kConvBias: return !mamba.conv_bias;
    case kXBias: return !mamba.x_bias;
    default: return false;
  }
}

struct MbjsSizes {
  std::int64_t v = 0, m = 0, d = 0, k = 0, n = 0, r = 0;

  // Returns the shapes of a layer's tensors in tensorgrad.
  [[nodiscard]] std::array<Shape, kTensorsOfLayer> shapes() const {
    return {{{2 * d, m},
             {2 * d},
             {d, 1, k},
             {d},
             {r + 2 * n, d},
             {r + 2 * n},
             {d, r},
             {d},
             {d, n},
             {d},
             {m, d},
             {m},
             {m}}};
  }
};

// Returns taps [D, K] with the order along K reversed.
std::vector<float> turned_taps(const std::vector<float>& taps, std::int64_t k) {
  std::vector<float> out = taps;
  for (auto row = out.begin(); row != out.end(); row += k) std::reverse(row, row + k);
  return out;
}

class MbjsModel {
 public:
  MbjsModel(const MbjsFile& file, const std::string& name) : file_(file), name_(name) {
    const std::size_t tensors = file.tensors.size();
    layers_ = file.version == 1 ? (tensors < 2 ? 0 : (tensors - 2) / kTensorsOfLayer)
                                : file.layers.size();
    for (std::size_t i = 0; i < file.layers.size(); ++i) {
      if (file.layers[i] == MbjsLayer::kMamba1) continue;
      constexpr const char* kNames[] = {"mamba1", "mamba2", "mamba3", "attention"};
      fail("layer " + std::to_string(i) + " is " +
           kNames[static_cast<std::size_t>(file.layers[i])] + "; only mamba1 can be converted");
    }
    const std::size_t expected = layers_ * kTensorsOfLayer + 2;
    if (layers_ == 0 || tensors != expected) {
      fail("expected " + std::to_string(expected) + " tensors for " + std::to_string(layers_) +
           " mamba1 layers, got " + std::to_string(tensors));
    }
    find_sizes();
  }

  SavedModel model(const MbjsOptions& options) {
    SavedModel made;
    made.config = {.vocab_size = sizes_.v,
                   .d_model = sizes_.m,
                   .n_layer = static_cast<std::int64_t>(layers_),
                   .layers = std::vector(layers_, nn::MixerKind::kMamba1)};
    made.config.norm_epsilon = options.norm_epsilon;
    nn::MambaOptions& mamba = made.config.mamba;
    mamba.d_state = sizes_.n;
    mamba.d_conv = sizes_.k;
    mamba.expand = sizes_.d / sizes_.m;
    mamba.dt_rank = sizes_.r;
    mamba.discretization = options.discretization;
    mamba.bias = any(kInBias) || any(kOutBias);
    mamba.conv_bias = any(kConvBias);
    mamba.x_bias = any(kXBias);
    made.weights["backbone.embedding.weight"] =
        HostTensor::from({sizes_.v, sizes_.m}, file_.tensors.front());
    made.weights["backbone.norm_f.weight"] = HostTensor::from({sizes_.m}, file_.tensors.back());
    const auto shapes = sizes_.shapes();
    for (std::size_t i = 0; i < layers_; ++i) {
      for (std::size_t t = 0; t < kTensorsOfLayer; ++t) {
        if (is_left_out(t, mamba)) continue;
        const std::vector<float>& values = tensor(i, t);
        made.weights[layer_prefix(i) + kMbjsNames[t][1]] =
            HostTensor::from(shapes[t], t == kConvWeight ? turned_taps(values, sizes_.k) : values);
      }
    }
    check_weights(made.config, made.weights, name_);
    return made;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw IoError(name_ + ": " + what); }
  [[nodiscard]] const std::vector<float>& tensor(std::size_t layer, std::size_t t) const {
    return file_.tensors[1 + layer * kTensorsOfLayer + t];
  }
  [[nodiscard]] bool any(std::size_t t) const {
    for (std::size_t i = 0; i < layers_; ++i) {
      for (const float value : tensor(i, t)) {
        if (value != 0) return true;
      }
    }
    return false;
  }
  // Returns the number of elements in tensor t of layer 0, divided by `size`. Throws IoError if it
  // is 0 or not a multiple.
  [[nodiscard]] std::int64_t times(std::size_t t, std::int64_t size) const {
    const auto count = static_cast<std::int64_t>(tensor(0, t).size());
    if (count > 0 && count % size == 0) return count / size;
    fail("tensor layer0." + std::string(kMbjsNames[t][0]) + ": expected a multiple of " +
         std::to_string(size) + " values, got " + std::to_string(count));
  }

  void find_sizes() {
    sizes_.m = static_cast<std::int64_t>(file_.tensors.back().size());
    const auto table = static_cast<std::int64_t>(file_.tensors.front().size());
    sizes_.d = static_cast<std::int64_t>(tensor(0, kSkip).size());
    if (sizes_.m == 0 || table == 0 || table % sizes_.m != 0) {
      fail("tensor embedding: expected a multiple of final_norm's " + std::to_string(sizes_.m) +
           " values, got " + std::to_string(table));
    }
    sizes_.v = table / sizes_.m;
    if (sizes_.d == 0 || sizes_.d % sizes_.m != 0) {
      fail("tensor layer0.D_vec: expected a multiple of " + std::to_string(sizes_.m) +
           " values, got " + std::to_string(sizes_.d));
    }
    sizes_.k = times(kConvWeight, sizes_.d);
    if (sizes_.k < 2)
      fail("tensor layer0.wConv: expected at least two taps for each channel, got 1");
    sizes_.n = times(kALog, sizes_.d);
    sizes_.r = times(kDtWeight, sizes_.d);
    const auto shapes = sizes_.shapes();
    for (std::size_t i = 0; i < layers_; ++i) {
      for (std::size_t t = 0; t < kTensorsOfLayer; ++t) {
        const auto given = static_cast<std::int64_t>(tensor(i, t).size());
        if (given == numel(shapes[t])) continue;
        fail("tensor layer" + std::to_string(i) + "." + kMbjsNames[t][0] + ": expected " +
             std::to_string(numel(shapes[t])) + " values, got " + std::to_string(given));
      }
    }
  }

  const MbjsFile& file_;
  const std::string& name_;
  std::size_t layers_ = 0;
  MbjsSizes sizes_;
};

}  // namespace

SavedModel convert_mbjs(const MbjsFile& file, const std::string& name, const MbjsOptions& options) {
  return MbjsModel(file, name).model(options);
}

SavedModel load_mbjs(const FileSource& source, const MbjsOptions& options) {
  return convert_mbjs(read_mbjs(source), source.name(), options);
}

void save_mbjs(const FileSink& sink, const SavedModel& given, int version) {
  const std::string& path = sink.name();
  const nn::LanguageModelConfig& config = given.config;
  const bool plain = std::all_of(config.layers.begin(), config.layers.end(),
                                 [](nn::MixerKind k) { return k == nn::MixerKind::kMamba1; });
  if (!plain || !config.tie_embeddings || config.norm != nn::NormKind::kRmsNorm ||
      config.n_positions > 0 || config.mamba.b_c_dt_norm || !config.layer_options.empty()) {
    throw UserError(path +
                    ": MBJS supports only models with mamba1 layers, RMS norms before them, "
                    "a tied head, and the same options in all layers");
  }
  check_weights(config, given.weights, path);
  const SavedModel model = quantize(given, nn::WeightFormat::kF32);
  const nn::Mamba sizes(config.d_model, config.mamba);
  const MbjsSizes mbjs{config.vocab_size,   config.d_model,       sizes.d_inner,
                       config.mamba.d_conv, config.mamba.d_state, sizes.dt_rank};
  const auto shapes = mbjs.shapes();
  const auto layers = static_cast<std::size_t>(config.n_layer);
  MbjsFile file{.version = version, .layers = {}, .tensors = {}};
  if (version != 1) file.layers.assign(layers, MbjsLayer::kMamba1);
  file.tensors.push_back(model.weights.at("backbone.embedding.weight").floats());
  for (std::size_t i = 0; i < layers; ++i) {
    for (std::size_t t = 0; t < kTensorsOfLayer; ++t) {
      const std::string name = layer_prefix(i) + kMbjsNames[t][1];
      std::vector<float> values =
          is_left_out(t, config.mamba)
              ? std::vector<float>(static_cast<std::size_t>(numel(shapes[t])))
              : model.weights.at(name).floats();
      if (t == kConvWeight) values = turned_taps(values, mbjs.k);
      file.tensors.push_back(std::move(values));
    }
  }
  file.tensors.push_back(model.weights.at("backbone.norm_f.weight").floats());
  write_mbjs(sink, file);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
