// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/quantize.h"

#include <set>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

constexpr std::string_view kDataSuffix = ".data", kScaleSuffix = ".scale";

// Returns the names of the weights that a model with this configuration quantizes.
std::set<std::string> packed_names(const nn::LanguageModelConfig& config) {
  std::set<std::string> names;
  ParameterVisitor visitor([](const std::string&, const Parameter&) {},
                           [&](const std::string& path, const Buffer&) {
                             if (path.ends_with(kDataSuffix))
                               names.insert(path.substr(0, path.size() - kDataSuffix.size()));
                           });
  nn::LanguageModel(config).visit_fields(visitor);
  return names;
}

SavedModel unpacked(const SavedModel& model) {
  SavedModel made = model;
  made.config.weight_format = nn::WeightFormat::kF32;
  for (const std::string& name : packed_names(model.config)) {
    const auto data = made.weights.extract(name + std::string(kDataSuffix));
    const auto scale = made.weights.extract(name + std::string(kScaleSuffix));
    nn::QuantizedTensor quantized{data.mapped(), std::nullopt};
    if (!scale.empty()) quantized.scale = scale.mapped();
    made.weights[name] = nn::dequantize_weight(quantized, model.config.weight_format);
  }
  return made;
}

}  // namespace

SavedModel quantize(const SavedModel& model, nn::WeightFormat format) {
  check_weights(model.config, model.weights, "quantize");
  SavedModel made = unpacked(model);
  if (format == nn::WeightFormat::kF32) return made;
  made.config.weight_format = format;
  for (const std::string& name : packed_names(made.config)) {
    try {
      nn::QuantizedTensor quantized =
          nn::quantize_weight(made.weights.extract(name).mapped(), format);
      made.weights[name + std::string(kDataSuffix)] = std::move(quantized.data);
      if (quantized.scale)
        made.weights[name + std::string(kScaleSuffix)] = std::move(*quantized.scale);
    } catch (Error& error) {
      error.add_context("while quantizing " + name);
      throw;
    }
  }
  return made;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
