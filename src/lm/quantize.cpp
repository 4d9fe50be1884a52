// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/quantize.h"

#include <set>

#include "tensorgrad/error.h"

namespace tensorgrad::lm {
namespace {

constexpr std::string_view kDataSuffix = ".data", kScaleSuffix = ".scale";

// What a model of the configuration keeps in its format, by the names of the weights.
std::set<std::string> packed_names(const nn::MambaConfig& config) {
  std::set<std::string> names;
  ParameterVisitor visitor([](const std::string&, const Parameter&) {},
                           [&](const std::string& path, const Buffer&) {
                             if (path.ends_with(kDataSuffix))
                               names.insert(path.substr(0, path.size() - kDataSuffix.size()));
                           });
  nn::MambaLM(config).visit_fields(visitor);
  return names;
}

SavedModel unpacked(const SavedModel& model) {
  SavedModel made = model;
  made.config.weights = nn::WeightFormat::kF32;
  for (const std::string& name : packed_names(model.config)) {
    const auto data = made.weights.extract(name + std::string(kDataSuffix));
    const auto scale = made.weights.extract(name + std::string(kScaleSuffix));
    nn::PackedValues packed{data.mapped(), std::nullopt};
    if (!scale.empty()) packed.scale = scale.mapped();
    made.weights[name] = nn::unpack_weight(packed, model.config.weights);
  }
  return made;
}

}  // namespace

SavedModel quantize(const SavedModel& model, nn::WeightFormat format) {
  check_weights(model.config, model.weights, "quantize");
  SavedModel made = unpacked(model);
  if (format == nn::WeightFormat::kF32) return made;
  made.config.weights = format;
  for (const std::string& name : packed_names(made.config)) {
    try {
      nn::PackedValues packed = nn::pack_weight(made.weights.extract(name).mapped(), format);
      made.weights[name + std::string(kDataSuffix)] = std::move(packed.data);
      if (packed.scale) made.weights[name + std::string(kScaleSuffix)] = std::move(*packed.scale);
    } catch (Error& error) {
      error.add_context("while packing " + name);
      throw;
    }
  }
  return made;
}

}  // namespace tensorgrad::lm
