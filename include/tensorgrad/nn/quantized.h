// SPDX-License-Identifier: MIT
// Weight-only quantization, for models that are not trained. Kernels read the quantized matrix and
// convert its elements to f32 inside the product; no f32 copy of the matrix is stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/nn/module.h"
#include "tensorgrad/train/inputs.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Storage format of a weight matrix.
enum class WeightFormat : std::uint8_t {
  kF32,            ///< Not quantized.
  kF16,            ///< IEEE 754 binary16.
  kBf16,           ///< bfloat16, the upper half of an f32.
  kInt8,           ///< -127 to 127, with a scale for each row (output channel).
  kInt8PerTensor,  ///< -127 to 127, with one scale.
  kInt4            ///< -7 to 7, with a scale for each 32 elements of a row.
};

/// Returns the name of a format: "f32", "f16", "bf16", "int8", "int8_per_tensor" or "int4".
std::string_view to_string(WeightFormat format);
using tensorgrad::to_string;  // The function above would hide the others.

/// Returns the format of a name; the inverse of to_string(). If the name is unknown, throws
/// UserError with a list of the names.
WeightFormat parse_weight_format(std::string_view name, Loc loc = Loc::current());

/// Returns true if rows of `in` elements fit the format. `in` must be a multiple of 2 for f16 and
/// bf16, of 4 for int8 and int8_per_tensor, and of 32 for int4. f32 has no restriction.
bool can_quantize(std::int64_t in, WeightFormat format);

/// Quantized matrix [out, in] in host memory.
struct QuantizedTensor {
  /// The elements: f16 [out, in] for kF16. For other formats, u32 [out, in * bits / 32], packed
  /// from the lowest bits of each word.
  HostTensor data;

  /// The scales, f32: [out, 1] for kInt8, [1, 1] for kInt8PerTensor and [out, in / 32] for kInt4.
  /// Other formats have none.
  std::optional<HostTensor> scale;
};

/// Returns a weight f32 [out, in] in another format. Values are rounded to the nearest, with ties
/// to even. The scale of integers is the largest magnitude divided by 127, or by 7 for int4. If
/// this scale is less than 2^-100, the elements become 0.
///
/// Throws UserError if the weight is not f32 with two axes, the format is kF32, or a value is not
/// finite or too large for f16 or bf16. Throws ShapeError if can_quantize() is false.
QuantizedTensor quantize_weight(const HostTensor& weight, WeightFormat format,
                                Loc loc = Loc::current());

/// Returns the f32 values [out, in] that kernels compute from a quantized matrix.
HostTensor dequantize_weight(const QuantizedTensor& quantized, WeightFormat format);

/// Quantized weight of a layer, on the device. Its buffers `data` and `scale` have the shapes and
/// dtypes of QuantizedTensor.
struct QuantizedWeight {
  /// Declares the buffers of a weight of zeros. Throws ShapeError if can_quantize() is
  /// false, and UserError if the format is kF32.
  QuantizedWeight(std::int64_t out, std::int64_t in, WeightFormat format, Loc loc = Loc::current());

  std::int64_t out;             ///< Number of rows.
  std::int64_t in;              ///< Number of elements in a row.
  WeightFormat format;          ///< Format of `data`. Not kF32.
  Buffer data;                  ///< The elements; see QuantizedTensor::data.
  std::optional<Buffer> scale;  ///< The scales; see QuantizedTensor::scale.
  TG_MODULE(data, scale)

  /// Returns the dequantized weight, f32 [out, in]. An op that reads it converts the elements.
  [[nodiscard]] Tensor tensor(Loc loc = Loc::current()) const;

  /// Returns x W^T: [..., in] -> [..., out].
  [[nodiscard]] Tensor times(Tensor x, Loc loc = Loc::current()) const;

  /// Returns rows by index: i32 [...] -> [..., in].
  [[nodiscard]] Tensor rows(Tensor index, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
