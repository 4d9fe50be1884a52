// SPDX-License-Identifier: MIT
// Configurations as JSON. The visit_ functions name each field once, for writing and reading.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "base/owned_json.h"
#include "lm/read_json.h"
#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

using ConfigJson = nlohmann::ordered_json;
using nn::MixerKind;

constexpr const char* kFormat = "tensorgrad LanguageModel";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;  // the product of two fits in int64
constexpr std::int64_t kMaxLayers = 65'536;
constexpr std::int64_t kMaxLayerOptions = std::int64_t{1} << 20;  // entries times layers
constexpr double kMaxNumber = 1e30, kMinNumber = 1e-30;
// Names of enumerators, in their order.
constexpr std::array kNorms = {"rms_norm", "layer_norm"};                   // nn::NormKind
constexpr std::array kDecays = {"softplus", "heavy_tail"};                  // nn::DecayActivation
constexpr std::array kMlps = {"swiglu", "gelu"};                            // nn::MlpKind
constexpr const char* kOutNorms[] = {"none", "before_gate", "after_gate"};  // nn::OutNorm

class ConfigWriter {
 public:
  // If `all`, also writes optional fields that have their default values.
  explicit ConfigWriter(ConfigJson& out, bool all = false) : out_(out), all_(all) {}

  void size(const char* key, const std::int64_t& value, std::int64_t) { out_[key] = value; }
  void number(const char* key, const double& value, double) { out_[key] = value; }
  void boolean(const char* key, const bool& value) { out_[key] = value; }
  void kinds(const char* key, const std::vector<MixerKind>& value) {
    out_[key] = ConfigJson::array();
    for (const MixerKind kind : value) out_[key].push_back(nn::to_string(kind));
  }
  void rule(const char* key, const Discretization& value) {
    out_[key] = value == Discretization::kEuler ? "euler" : "zero_order_hold";
  }
  void out_norm(const char* key, const nn::OutNorm& value) {
    out_[key] = kOutNorms[static_cast<std::size_t>(value)];
  }
  void format(const char* key, const nn::WeightFormat& value) { out_[key] = nn::to_string(value); }
  // Optional fields, which older versions do not know. Written only if not equal to the default.
  void size_or(const char* key, const std::int64_t& value, std::int64_t usual) {
    if (all_ || value != usual) out_[key] = value;
  }
  void number_or(const char* key, const double& value, double usual) {
    if (all_ || value != usual) out_[key] = value;
  }
  void boolean_or(const char* key, const bool& value, bool usual) {
    if (all_ || value != usual) out_[key] = value;
  }
  template <class Enum, std::size_t n>
  void choice(const char* key, const Enum& value, const std::array<const char*, n>& names) {
    if (all_ || value != Enum{}) out_[key] = names.at(static_cast<std::size_t>(value));
  }
  template <class Fields>
  void object(const char* key, const Fields& fields) {
    ConfigWriter inner(out_[key] = ConfigJson::object(), all_);
    fields(inner);
  }
  void layer_options(const char* key, const nn::LanguageModelConfig& config);

 private:
  ConfigJson& out_;
  bool all_;
};

class ConfigReader {
 public:
  // If `partial`, missing fields keep their values.
  ConfigReader(const nlohmann::json& in, std::string_view file, std::string path, bool partial)
      : in_(in), file_(file), path_(std::move(path)), partial_(partial) {
    if (!in_.is_object()) fail(path_.empty() ? "the configuration" : path_, "expected an object");
  }

  void size(const char* key, std::int64_t& value, std::int64_t least) {
    if (keeps(key)) return;
    const nlohmann::json& given = at(key);
    const bool whole = given.is_number_integer() &&
                       (!given.is_number_unsigned() || given.get<std::uint64_t>() <= INT64_MAX);
    value = whole ? given.get<std::int64_t>() : 0;
    if (whole && value >= least && value <= kLargestSize) return;
    fail(full(key), "expected an integer from " + std::to_string(least) + " to " +
                        std::to_string(kLargestSize) + ", got " + shown(given));
  }
  // Reads a number of at least `least`, which is 0 or kMinNumber.
  void number(const char* key, double& value, double least) {
    if (keeps(key)) return;
    const nlohmann::json& given = at(key);
    value = given.is_number() ? given.get<double>() : NAN;
    if (value >= least && value <= kMaxNumber) return;
    fail(full(key), std::string("expected a number ") + (least > 0 ? "above 0" : "of 0 or more") +
                        ", got " + shown(given));
  }
  void boolean(const char* key, bool& value) {
    if (keeps(key)) return;
    const nlohmann::json& given = at(key);
    if (!given.is_boolean()) fail(full(key), "expected true or false, got " + shown(given));
    value = given.get<bool>();
  }
  // Reads a list of kinds, or the name of a schedule for `n_layer` layers.
  void kinds(const char* key, std::vector<MixerKind>& value) {
    const nlohmann::json& given = at(key);
    if (given.is_string()) {
      const nlohmann::json& count = at("n_layer");
      if (!count.is_number_integer() || count < 1 || count > kMaxLayers) {
        fail(full("n_layer"), "expected an integer from 1 to " + std::to_string(kMaxLayers) +
                                  ", got " + shown(count));
      }
      try {
        value = nn::mixer_schedule(given.get<std::string>(), count.get<std::int64_t>());
      } catch (const UserError& error) {
        fail(full(key), error.message());
      }
      return;
    }
    if (!given.is_array() || given.empty() || given.size() > static_cast<std::size_t>(kMaxLayers)) {
      fail(full(key), "expected a list of 1 to " + std::to_string(kMaxLayers) +
                          " layer kinds, or the name of a schedule");
    }
    value.clear();
    for (const nlohmann::json& each : given) {
      std::optional<MixerKind> kind;
      if (each.is_string()) kind = nn::parse_mixer_kind(each.get_ref<const std::string&>());
      if (!kind) {
        fail(full(key) + "[" + std::to_string(value.size()) + "]",
             "expected mamba1, mamba2, mamba3, attention, mlp, moe or mamba2_shared, got " +
                 shown(each));
      }
      value.push_back(*kind);
    }
  }
  void rule(const char* key, Discretization& value) {
    if (keeps(key)) return;
    const nlohmann::json& given = at(key);
    if (given != "euler" && given != "zero_order_hold") {
      fail(full(key), "expected euler or zero_order_hold, got " + shown(given));
    }
    value = given == "euler" ? Discretization::kEuler : Discretization::kZeroOrderHold;
  }
  // Missing in older files.
  void out_norm(const char* key, nn::OutNorm& value) {
    if (!in_.contains(key)) return;
    const nlohmann::json& given = at(key);
    const auto* const found = std::find(std::begin(kOutNorms), std::end(kOutNorms), given);
    if (found == std::end(kOutNorms))
      fail(full(key), "expected none, before_gate or after_gate, got " + shown(given));
    value = static_cast<nn::OutNorm>(found - std::begin(kOutNorms));
  }
  void format(const char* key, nn::WeightFormat& value) {
    if (keeps(key)) return;
    const ConfigJson& given = at(key);
    if (!given.is_string()) fail(full(key), "expected a weight format, got " + shown(given));
    try {
      value = nn::parse_weight_format(given.get<std::string>());
    } catch (const UserError& error) {
      fail(full(key), error.message());
    }
  }
  void size_or(const char* key, std::int64_t& value, std::int64_t usual) {
    if (!partial_) value = usual;
    if (in_.contains(key)) size(key, value, 0);
  }
  void number_or(const char* key, double& value, double usual) {
    if (!partial_) value = usual;
    if (in_.contains(key)) number(key, value, 0);
  }
  void boolean_or(const char* key, bool& value, bool usual) {
    if (!partial_) value = usual;
    if (in_.contains(key)) boolean(key, value);
  }
  template <class Enum, std::size_t n>
  void choice(const char* key, Enum& value, const std::array<const char*, n>& names) {
    if (!partial_) value = Enum{};
    if (!in_.contains(key)) return;
    const nlohmann::json& given = at(key);
    const auto found = std::find(names.begin(), names.end(), given);
    if (found == names.end()) {
      std::string all;
      for (const char* name : names) all += (all.empty() ? "" : " or ") + std::string(name);
      fail(full(key), "expected " + all + ", got " + shown(given));
    }
    value = static_cast<Enum>(found - names.begin());
  }
  template <class Fields>
  void object(const char* key, const Fields& fields) {
    if (keeps(key)) return;
    ConfigReader inner(at(key), file_, full(key), partial_);
    fields(inner);
    inner.finish();
  }
  void layer_options(const char* key, nn::LanguageModelConfig& config);

  void text(const char* key, std::string_view expected) {
    if (keeps(key)) return;
    const nlohmann::json& given = at(key);
    if (given != expected)
      fail(full(key), "expected \"" + std::string(expected) + "\", got " + shown(given));
  }
  // Throws IoError if there is an unknown field.
  void finish() const {
    for (const auto& [key, value] : in_.items()) {
      if (!taken_.contains(key)) fail(full(key.c_str()), "unknown field");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    throw IoError(std::string(file_) + ": " + what + ": " + expected);
  }
  [[nodiscard]] std::string full(const char* key) const {
    return path_.empty() ? key : path_ + "." + key;
  }
  [[nodiscard]] static std::string shown(const nlohmann::json& value) {
    constexpr std::size_t kMaxShownText = 40;
    std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    if (text.size() > kMaxShownText) text = text.substr(0, kMaxShownText) + "...";
    return text;
  }
  [[nodiscard]] bool keeps(const char* key) const { return partial_ && !in_.contains(key); }
  const nlohmann::json& at(const char* key) {
    taken_.insert(key);
    const auto found = in_.find(key);
    if (found == in_.end()) fail(full(key), "is missing");
    return *found;
  }

  const nlohmann::json& in_;
  std::string_view file_;
  std::string path_;
  bool partial_;
  std::set<std::string, std::less<>> taken_;
};

// Visits the fields that Mamba2Options and Mamba3Options share.
template <class Visitor, class Options>
void visit_heads(Visitor& v, Options& o) {
  v.size("d_state", o.d_state, 1);
  v.size("expand", o.expand, 1);
  v.size("head_dim", o.head_dim, 1);
  v.size("chunk", o.chunk, 1);
  v.number("a_min", o.a_min, kMinNumber);
  v.number("a_max", o.a_max, kMinNumber);
  v.number("norm_epsilon", o.norm_epsilon, 0);
}

template <class Visitor, class Options>
void visit_steps(Visitor& v, Options& o) {
  v.number("dt_min", o.dt_min, kMinNumber);
  v.number("dt_max", o.dt_max, kMinNumber);
  v.number("dt_floor", o.dt_floor, 0);
}

template <class Visitor, class Heads, class Options>
void visit_attention(Visitor& v, Heads& heads, Options& o) {
  v.size("heads", heads, 1);
  v.size("kv_heads", o.kv_heads, 0);
  v.number("rope_base", o.rope_base, kMinNumber);
  v.size("max_length", o.max_length, 1);
  v.boolean_or("rope", o.rope, true);
  v.boolean_or("bias", o.bias, false);
  v.size_or("rope_dims", o.rope_dims, 0);
}

// Visits the options of the kinds of layers for which `has` is true.
template <class Visitor, class Config, class Has>
void visit_options(Visitor& v, Config& c, const Has& has) {
  if (has(MixerKind::kMamba1)) {
    v.object("mamba1", [&](Visitor& in) {
      auto& o = c.mamba;
      in.size("d_state", o.d_state, 1);
      in.size("d_conv", o.d_conv, 2);
      in.size("expand", o.expand, 1);
      in.size("dt_rank", o.dt_rank, 0);
      in.boolean("bias", o.bias);
      in.boolean("conv_bias", o.conv_bias);
      in.boolean("x_bias", o.x_bias);
      in.rule("discretization", o.discretization);
      in.boolean_or("b_c_dt_norm", o.b_c_dt_norm, false);
      in.boolean_or("b_c_dt_norm_weights", o.b_c_dt_norm_weights, false);
      in.number_or("norm_epsilon", o.norm_epsilon, nn::MambaOptions{}.norm_epsilon);
      visit_steps(in, o);
    });
  }
  if (has(MixerKind::kMamba2) || has(MixerKind::kMamba2Shared)) {
    v.object("mamba2", [&](Visitor& in) {
      in.size("d_conv", c.mamba2.d_conv, 2);
      in.size("groups", c.mamba2.groups, 1);
      in.boolean("bias", c.mamba2.bias);
      in.boolean("conv_bias", c.mamba2.conv_bias);
      in.number("dt_limit_min", c.mamba2.dt_limit_min, 0);
      in.number("dt_limit_max", c.mamba2.dt_limit_max, 0);
      visit_heads(in, c.mamba2);
      visit_steps(in, c.mamba2);
    });
  }
  if (has(MixerKind::kMamba3)) {
    v.object("mamba3", [&](Visitor& in) {
      in.size("ranks", c.mamba3.ranks, 1);
      in.out_norm("out_norm", c.mamba3.out_norm);
      in.choice("decay", c.mamba3.decay, kDecays);
      in.number_or("a_floor", c.mamba3.a_floor, nn::Mamba3Options{}.a_floor);
      visit_heads(in, c.mamba3);
      visit_steps(in, c.mamba3);
    });
  }
  if (has(MixerKind::kAttention)) {
    v.object("attention", [&](Visitor& in) { visit_attention(in, c.heads, c.attention); });
  }
  if (has(MixerKind::kMlp)) {
    v.object("mlp", [&](Visitor& in) {
      in.size("width", c.mlp_width, 0);
      in.choice("kind", c.mlp, kMlps);
      in.boolean_or("bias", c.mlp_bias, false);
    });
  }
  if (has(MixerKind::kMoe)) {
    v.object("moe", [&](Visitor& in) {
      in.size("experts", c.moe.experts, 1);
      in.size("top_k", c.moe.top_k, 1);
      in.size("width", c.moe.width, 0);
    });
  }
  if (has(MixerKind::kMamba2Shared)) {
    v.object("mamba2_shared", [&](Visitor& in) {
      auto& o = c.shared;
      in.size("blocks", o.blocks, 1);
      visit_attention(in, o.heads, o.attention);
      in.size("mlp_width", o.mlp_width, 0);
      in.boolean_or("mlp_bias", o.mlp_bias, false);
      in.size_or("adapter_rank", o.adapter_rank, 0);
      in.boolean_or("attention_adapters", o.attention_adapters, false);
    });
  }
}

// Returns true if the entry has options for this kind of layer.
bool has_options(const nn::LayerOptions& entry, MixerKind kind) {
  switch (kind) {
    case MixerKind::kMamba1: return entry.mamba.has_value();
    case MixerKind::kMamba2: return entry.mamba2.has_value();
    case MixerKind::kMamba3: return entry.mamba3.has_value();
    case MixerKind::kAttention: return entry.attention.has_value();
    case MixerKind::kMlp: return entry.mlp.has_value();
    case MixerKind::kMoe: return entry.moe.has_value();
    case MixerKind::kMamba2Shared: return false;
  }
  return false;
}

void ConfigWriter::layer_options(const char* key, const nn::LanguageModelConfig& config) {
  if (config.layer_options.empty()) return;
  out_[key] = ConfigJson::array();
  for (const nn::LayerOptions& entry : config.layer_options) {
    ConfigJson& written = out_[key].emplace_back(ConfigJson::object());
    written["first"] = entry.first;
    written["period"] = entry.period;
    nn::LanguageModelConfig whole;
    whole.n_layer = 1;
    whole.layer_options = {entry};
    whole.layer_options[0].first = 0;
    const nn::LanguageModelConfig options = nn::layer_config(whole, 0);
    // Writes all fields, so that they do not depend on the options of the model.
    ConfigWriter writer(written, true);
    visit_options(writer, options, [&](MixerKind kind) { return has_options(entry, kind); });
  }
}

void ConfigReader::layer_options(const char* key, nn::LanguageModelConfig& config) {
  config.layer_options.clear();
  if (!in_.contains(key)) return;
  const nlohmann::json& given = at(key);
  const auto layers = static_cast<std::int64_t>(config.layers.size());
  const std::int64_t most = std::max<std::int64_t>(1, kMaxLayerOptions / layers);
  if (!given.is_array() || given.size() > static_cast<std::size_t>(most)) {
    fail(full(key), "expected a list of at most " + std::to_string(most) + " objects for " +
                        std::to_string(layers) + " layers");
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    ConfigReader in(given[i], file_, full(key) + "[" + std::to_string(i) + "]", true);
    nn::LayerOptions entry;
    in.size("first", entry.first, 0);
    in.size("period", entry.period, 0);
    nn::LanguageModelConfig of = config;  // defaults of missing fields
    // Shared blocks have the same options in all layers, so finish() reports theirs.
    const auto has = [&](MixerKind kind) {
      return kind != MixerKind::kMamba2Shared &&
             given[i].contains(std::string(nn::to_string(kind)));
    };
    visit_options(in, of, has);
    if (has(MixerKind::kMamba1)) entry.mamba = of.mamba;
    if (has(MixerKind::kMamba2)) entry.mamba2 = of.mamba2;
    if (has(MixerKind::kMamba3)) entry.mamba3 = of.mamba3;
    if (has(MixerKind::kAttention)) entry.attention = nn::AttentionLayer{of.heads, of.attention};
    if (has(MixerKind::kMlp)) entry.mlp = nn::MlpLayer{of.mlp, of.mlp_width, of.mlp_bias};
    if (has(MixerKind::kMoe)) entry.moe = of.moe;
    in.finish();
    config.layer_options.push_back(entry);
  }
}

template <class Visitor, class Config>
void visit_config(Visitor& v, Config& c) {
  v.size("vocab_size", c.vocab_size, 1);
  v.size("d_model", c.d_model, 1);
  v.kinds("layers", c.layers);
  v.number("norm_epsilon", c.norm_epsilon, 0);
  v.boolean("tie_embeddings", c.tie_embeddings);
  v.format("weight_format", c.weight_format);
  v.choice("norm", c.norm, kNorms);
  v.size_or("n_positions", c.n_positions, 0);
  visit_options(v, c, [&](MixerKind kind) {
    return std::find(c.layers.begin(), c.layers.end(), kind) != c.layers.end();
  });
  v.layer_options("layer_options", c);
}

}  // namespace

std::string to_json(const nn::LanguageModelConfig& given, Loc loc) {
  nn::LanguageModelConfig config = given;
  if (config.layers.empty()) config.layers = nn::mixer_schedule("mamba1", config.n_layer, loc);
  if (config.vocab_size < 1 || config.d_model < 1 || config.layers.empty() ||
      static_cast<std::int64_t>(config.layers.size()) != config.n_layer) {
    throw UserError(
        "to_json: vocab_size and d_model must be set, and layers must have n_layer elements", loc);
  }
  OwnedJson out(ConfigJson::object());
  (*out)["format"] = kFormat;
  (*out)["version"] = kVersion;
  ConfigWriter writer(*out);
  visit_config(writer, config);
  return (*out).dump();
}

nn::LanguageModelConfig config_from_json(std::string_view json, std::string_view name,
                                         bool partial) {
  const OwnedJson tree(read_json(json, std::string(name) + ": the configuration"));
  const nlohmann::json& root = *tree;
  nn::LanguageModelConfig config;
  ConfigReader reader(root, name, "", partial);
  reader.text("format", kFormat);
  std::int64_t version = kVersion;
  reader.size("version", version, 1);
  if (version != kVersion) {
    throw IoError(std::string(name) + ": version: expected " + std::to_string(kVersion) + ", got " +
                  std::to_string(version) + "; the file was written by a newer tensorgrad");
  }
  visit_config(reader, config);
  reader.finish();
  config.n_layer = static_cast<std::int64_t>(config.layers.size());
  return config;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
