// SPDX-License-Identifier: MIT
// Linear, Embedding, PReLU and Sequential.
#include <cmath>

#include "tensorgrad/functional.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {
namespace {

// Returns PyTorch's default for Linear, kaiming_uniform with a = sqrt(5): uniform within
// +-1/sqrt(fan_in).
Init fan_in_uniform(std::int64_t fan_in) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return init::uniform(-bound, bound);
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias, Loc loc)
    : weight({out, in}, fan_in_uniform(in), loc) {
  if (with_bias) bias.emplace(Shape{out}, fan_in_uniform(in), loc);
}

namespace {

void visit_weight(ParameterVisitor& visitor, const Parameter& weight,
                  const std::optional<QuantizedWeight>& quantized) {
  if (quantized) {
    detail::visit_field(visitor, "weight", *quantized);
  } else {
    visitor.parameter("weight", weight);
  }
}

void quantize_matrix(const Parameter& weight, std::optional<QuantizedWeight>& quantized,
                     WeightFormat format, Loc loc) {
  const Shape& shape = weight.shape();
  quantized.reset();
  if (format == WeightFormat::kF32 || !can_quantize(shape[1], format)) return;
  quantized.emplace(shape[0], shape[1], format, loc);
}

}  // namespace

void Linear::visit_fields(ParameterVisitor& visitor) const {
  visit_weight(visitor, weight, quantized);
  detail::visit_field(visitor, "bias", bias);
}

void Linear::quantize(WeightFormat format, Loc loc) {
  quantize_matrix(weight, quantized, format, loc);
}

Tensor Linear::operator()(Tensor x, Loc loc) const {
  std::optional<Tensor> b;
  if (bias) b = bias->tensor(loc);
  if (!quantized) return linear(x, weight.tensor(loc), b, loc);
  const Tensor y = quantized->times(x, loc);
  return b ? y + *b : y;
}

Embedding::Embedding(std::int64_t count, std::int64_t size, Loc loc)
    : weight({count, size}, init::normal(0, 1), loc) {}

Embedding::Embedding(std::int64_t count, std::int64_t size, const Options& options, Loc loc)
    : Embedding(count, size, loc) {
  padding_idx = options.padding_idx;
  if (padding_idx && (*padding_idx < 0 || *padding_idx >= count)) {
    throw UserError("Embedding: padding_idx must be in [0, " + std::to_string(count) + "), got " +
                        std::to_string(*padding_idx),
                    loc);
  }
}

void Embedding::visit_fields(ParameterVisitor& visitor) const {
  visit_weight(visitor, weight, quantized);
}

void Embedding::quantize(WeightFormat format, Loc loc) {
  quantize_matrix(weight, quantized, format, loc);
}

Tensor Embedding::times(Tensor x, Loc loc) const {
  return quantized ? quantized->times(x, loc) : linear(x, weight.tensor(loc), std::nullopt, loc);
}

Tensor Embedding::operator()(Tensor index, Loc loc) const {
  const Tensor rows =
      quantized ? quantized->rows(index, loc) : embedding(index, weight.tensor(loc), loc);
  if (!padding_idx) return rows;
  const Tensor padding = eq(index, static_cast<double>(*padding_idx));
  return where(unsqueeze(padding, -1, loc), 0.0, rows);
}

PReLU::PReLU(std::int64_t count, double initial, Loc loc)
    : weight({count}, init::constant(initial), loc) {}

Tensor PReLU::operator()(Tensor x, Loc loc) const { return prelu(x, weight.tensor(loc), loc); }

Sequential::Sequential(const Sequential& other) {
  for (const auto& step : other.steps_) steps_.push_back(step->clone());
}

void Sequential::visit_fields(ParameterVisitor& visitor) const {
  for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i]->visit(visitor, std::to_string(i));
}

Tensor Sequential::operator()(Tensor x, Loc loc) const {
  for (const auto& step : steps_) x = step->run(x, loc);
  return x;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
