// SPDX-License-Identifier: MIT
// Matrices of weights kept in fewer bits, for models that are not trained. Kernels read them as
// they are kept: an element becomes f32 where a product takes it, and no copy of the matrix is
// made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/train/inputs.h"
#include "tensorgrad/nn/module.h"

namespace tensorgrad::nn {

enum class WeightFormat : std::uint8_t {
  kF32,
  kF16,            // IEEE 754 binary16
  kBf16,           // the upper half of an f32
  kInt8,           // -127 to 127, times a scale for each row (output channel)
  kInt8PerTensor,  // one scale for all
  kInt4            // -7 to 7, times a scale for each 32 elements of a row
};

// "f32", "f16", "bf16", "int8", "int8_per_tensor", "int4".
std::string_view to_string(WeightFormat format);
using tensorgrad::to_string;  // of shapes and element types, which the one above would hide
// The other way; throws UserError with the names there are.
WeightFormat parse_weight_format(std::string_view name, Loc loc = Loc::current());

// Rows of so many elements can be kept: f16 and bf16 want a multiple of 2, int8 of 4, int4 of 32.
bool can_quantize(std::int64_t in, WeightFormat format);

// A matrix [out, in] on the host in a format: `data` is f16 [out, in], or u32 words [out, words],
// elements in the words from the lowest bits on; `scale` is f32 [out, 1], [1, 1] or [out, in / 32].
struct QuantizedTensor {
  HostTensor data;
  std::optional<HostTensor> scale;
};
// f16 and bf16 are rounded to the nearest, ties to even; integers are the nearest multiples of a
// scale, which is the largest magnitude divided by 127 (7). Throws UserError: another type than f32
// with two axes, rows that cannot be kept, a value that is not finite or that f16 does not hold.
QuantizedTensor quantize_weight(const HostTensor& weight, WeightFormat format, Loc loc = Loc::current());
// What kernels make of them, [out, in].
HostTensor dequantize_weight(const QuantizedTensor& quantized, WeightFormat format);

// The values on the device. Their buffers are `data` and `scale`, as QuantizedTensor has them.
struct QuantizedWeight {
  // Throws ShapeError where rows cannot be kept, UserError for f32.
  QuantizedWeight(std::int64_t out, std::int64_t in, WeightFormat format, Loc loc = Loc::current());

  std::int64_t out, in;
  WeightFormat format;
  Buffer data;
  std::optional<Buffer> scale;
  TG_MODULE(data, scale)

  // f32 [out, in], for an op that reads it.
  [[nodiscard]] Tensor tensor(Loc loc = Loc::current()) const;
  // x [.., in] -> x W^T [.., out]
  [[nodiscard]] Tensor times(Tensor x, Loc loc = Loc::current()) const;
  // index i32 [..] -> its rows [.., in]
  [[nodiscard]] Tensor rows(Tensor index, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::nn
