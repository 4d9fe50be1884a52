// SPDX-License-Identifier: MIT
// Weight-only quantization: conversion on the host, and the ops that dequantize.
#include "tensorgrad/nn/quantized.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/numbers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {
namespace {

constexpr std::int64_t kInt4Group = 32;
constexpr int kWordBits = 32;

struct FormatRow {
  const char* name;
  int bits;
  std::int64_t multiple;  // divides the number of elements in a row
};
constexpr FormatRow kFormats[] = {{"f32", 32, 1},
                                  {"f16", 16, 2},
                                  {"bf16", 16, 2},
                                  {"int8", 8, 4},
                                  {"int8_per_tensor", 8, 4},
                                  {"int4", 4, kInt4Group}};

const FormatRow& format_row(WeightFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

bool is_integer(WeightFormat format) { return format_row(format).bits < 16; }
std::int64_t in_a_word(WeightFormat format) { return kWordBits / format_row(format).bits; }

std::optional<Shape> scale_shape(std::int64_t out, std::int64_t in, WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8: return Shape{out, 1};
    case WeightFormat::kInt8PerTensor: return Shape{1, 1};
    case WeightFormat::kInt4: return Shape{out, in / kInt4Group};
    default: return std::nullopt;
  }
}

Shape data_shape(std::int64_t out, std::int64_t in, WeightFormat format) {
  return {out, format == WeightFormat::kF16 ? in : in / in_a_word(format)};
}

void demand_rows(std::int64_t in, WeightFormat format, Loc loc) {
  if (format == WeightFormat::kF32)
    throw UserError("quantized weight: f32 is not a quantized format", loc);
  if (can_quantize(in, format)) return;
  throw ShapeError(
      "quantized weight: " + std::string(to_string(format)) + " needs rows of a multiple of " +
          std::to_string(format_row(format).multiple) + " elements, got " + std::to_string(in),
      loc);
}

std::uint32_t upper_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
}

struct PackedElements {
  std::vector<float> values;
  std::int64_t out, in;
  WeightFormat format;
  Loc loc;

  [[noreturn]] void fail(std::size_t at, const std::string& reason) const {
    throw UserError("quantize_weight: element " + std::to_string(at) + " is " +
                        number_text(double{values[at]}) + ", " + reason,
                    loc);
  }
  [[nodiscard]] double largest(std::size_t begin, std::size_t end) const {
    double most = 0;
    for (std::size_t i = begin; i < end; ++i) most = std::max(most, std::abs(double{values[i]}));
    return most;
  }
};

// Returns one scale for every `each` elements, in order.
std::vector<float> scales_of(const PackedElements& e, std::size_t each) {
  const double levels = e.format == WeightFormat::kInt4 ? 7 : 127;
  std::vector<float> scales;
  for (std::size_t at = 0; at < e.values.size(); at += each) {
    const auto scale = static_cast<float>(e.largest(at, at + each) / levels);
    // A smaller scale may be inexact or 0. With a scale of 1, the elements become 0.
    scales.push_back(scale >= 0x1p-100F ? scale : 1.0F);
  }
  return scales;
}

}  // namespace

std::string_view to_string(WeightFormat format) { return format_row(format).name; }

WeightFormat parse_weight_format(std::string_view name, Loc loc) {
  std::string names;
  for (std::size_t i = 0; i < std::size(kFormats); ++i) {
    if (name == kFormats[i].name) return static_cast<WeightFormat>(i);
    names += std::string(i == 0 ? "" : ", ") + kFormats[i].name;
  }
  throw UserError("unknown weight format '" + std::string(name) + "'; available: " + names, loc);
}

bool can_quantize(std::int64_t in, WeightFormat format) {
  return in % format_row(format).multiple == 0;
}

QuantizedTensor quantize_weight(const HostTensor& weight, WeightFormat format, Loc loc) {
  if (weight.dtype != f32 || weight.shape.size() != 2) {
    throw UserError("quantize_weight: expected f32 [out, in], got " +
                        std::string(to_string(weight.dtype)) + to_string(weight.shape),
                    loc);
  }
  const PackedElements e{weight.floats(), weight.shape[0], weight.shape[1], format, loc};
  demand_rows(e.in, format, loc);
  for (std::size_t i = 0; i < e.values.size(); ++i) {
    if (!std::isfinite(e.values[i])) e.fail(i, "which is not finite");
    if (format == WeightFormat::kF16 && std::abs(e.values[i]) >= 65520)
      e.fail(i, "which does not fit in f16");
    if (format == WeightFormat::kBf16 && (upper_half(e.values[i]) & 0x7fffU) == 0x7f80U)
      e.fail(i, "which does not fit in bf16");
  }
  QuantizedTensor made{
      {format == WeightFormat::kF16 ? f16 : u32, data_shape(e.out, e.in, format), {}},
      std::nullopt};
  if (format == WeightFormat::kF16) {
    for (const float value : e.values) {
      const std::uint16_t half = to_half(value);
      const auto bytes = std::as_bytes(std::span(&half, 1));
      made.data.bytes.insert(made.data.bytes.end(), bytes.begin(), bytes.end());
    }
    return made;
  }
  std::vector<float> scales;
  std::size_t each = 1;
  if (const std::optional<Shape> shape = scale_shape(e.out, e.in, format)) {
    each = e.values.size() / static_cast<std::size_t>(numel(*shape));
    scales = scales_of(e, each);
    made.scale = HostTensor::from(*shape, scales, loc);
  }
  const int bits = format_row(format).bits;
  const auto per = static_cast<std::size_t>(in_a_word(format));
  std::vector<std::uint32_t> words(e.values.size() / per);
  for (std::size_t i = 0; i < e.values.size(); ++i) {
    const std::uint32_t field =
        is_integer(format)
            ? static_cast<std::uint32_t>(std::lrint(e.values[i] / scales[i / each])) &
                  ((1U << bits) - 1)
            : upper_half(e.values[i]);
    words[i / per] |= field << (static_cast<std::size_t>(bits) * (i % per));
  }
  made.data = HostTensor::from(made.data.shape, words, loc);
  return made;
}

HostTensor dequantize_weight(const QuantizedTensor& quantized, WeightFormat format) {
  if (format == WeightFormat::kF16)
    return HostTensor::from(quantized.data.shape, quantized.data.floats());
  std::vector<std::uint32_t> words(quantized.data.bytes.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), quantized.data.bytes.data(), quantized.data.bytes.size());
  const auto per = static_cast<std::size_t>(in_a_word(format));
  const int bits = format_row(format).bits;
  std::vector<float> values(words.size() * per);
  std::vector<float> scales;
  if (quantized.scale) scales = quantized.scale->floats();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int lane = static_cast<int>(i % per);
    const std::uint32_t top = words[i / per] << (kWordBits - bits * (lane + 1));
    values[i] = is_integer(format)
                    ? static_cast<float>(static_cast<std::int32_t>(top) >> (kWordBits - bits)) *
                          scales[i * scales.size() / values.size()]
                    : std::bit_cast<float>(top & 0xffff0000U);
  }
  Shape shape = quantized.data.shape;
  shape[1] *= static_cast<std::int64_t>(per);
  return HostTensor::from(shape, values);
}

QuantizedWeight::QuantizedWeight(std::int64_t rows_out, std::int64_t row, WeightFormat how, Loc loc)
    : out(rows_out),
      in(row),
      format(how),
      data((demand_rows(row, how, loc), data_shape(rows_out, row, how)), 0,
           how == WeightFormat::kF16 ? f16 : u32, loc) {
  if (const auto shape = scale_shape(out, in, format)) scale.emplace(*shape, 1, f32, loc);
}

namespace {

// Unpacks words [..., W] to f32 [..., W * elements per word]. Does not apply the scale.
Tensor fields(Tensor words, WeightFormat format, Loc loc) {
  const std::int64_t per = in_a_word(format);
  const int bits = format_row(format).bits;
  Shape shape = words.shape(loc);
  shape.push_back(per);
  const Tensor each = broadcast_to(unsqueeze(words, -1, loc), shape, loc);
  const Tensor lane = iota(shape, static_cast<int>(shape.size()) - 1, u32, loc);
  // Shifts the highest bit of each element to that of the word.
  const auto number = [&](std::uint32_t value) { return Operand(static_cast<double>(value), loc); };
  const auto of = [&](Tensor value) { return Operand(value, loc); };
  const auto rest = static_cast<std::uint32_t>(kWordBits - bits);
  const Tensor amount = number(rest) - of(of(lane) * number(static_cast<std::uint32_t>(bits)));
  const Tensor top = bitwise_left_shift(of(each), of(amount));
  const Tensor value =
      is_integer(format)
          ? cast(of(bitwise_right_shift(of(bitcast(of(top), i32)), number(rest))), f32)
          : bitcast(of(bitwise_and(of(top), number(0xffff0000U))), f32);
  shape.pop_back();
  shape.back() *= per;
  return reshape(value, shape, loc);
}

// Multiplies the groups of value [..., in] by their scales [..., groups].
Tensor scaled(Tensor value, Tensor scale, Loc loc) {
  Shape whole = value.shape(loc), parts = whole;
  const std::int64_t groups = scale.shape(loc).back();
  parts.back() /= groups;
  parts.insert(parts.end() - 1, groups);
  return reshape(Operand(reshape(value, parts, loc), loc) * unsqueeze(scale, -1, loc), whole, loc);
}

}  // namespace

Tensor QuantizedWeight::tensor(Loc loc) const {
  if (format == WeightFormat::kF16) return cast(Operand(data.tensor(loc), loc), f32);
  const Tensor value = fields(data.tensor(loc), format, loc);
  return scale ? scaled(value, scale->tensor(loc), loc) : value;
}

Tensor QuantizedWeight::times(Tensor x, Loc loc) const {
  const bool by_row = format == WeightFormat::kInt8 || format == WeightFormat::kInt8PerTensor;
  if (!by_row) return linear(x, tensor(loc), std::nullopt, loc);
  // The scale is constant along a row, so it can be applied to the product.
  const Tensor y = linear(x, fields(data.tensor(loc), format, loc), std::nullopt, loc);
  return Operand(y, loc) * squeeze(scale->tensor(loc), 1, loc);
}

Tensor QuantizedWeight::rows(Tensor index, Loc loc) const {
  if (format == WeightFormat::kF16)
    return cast(Operand(embedding(index, data.tensor(loc), loc), loc), f32);
  const Tensor value = fields(embedding(index, data.tensor(loc), loc), format, loc);
  if (!scale) return value;
  const Tensor all = scale->tensor(loc);
  if (format == WeightFormat::kInt8PerTensor) return Operand(value, loc) * reshape(all, {1}, loc);
  return scaled(value, embedding(index, all, loc), loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
