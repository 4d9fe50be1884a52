// SPDX-License-Identifier: MIT
// Converts elements of stored tensors to their types in memory, of four bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/data/safetensors.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// Converts bfloat16, the upper half of a float. Exact.
float from_bfloat16(std::uint16_t bits);

struct Elements {
  DType dtype = f32;
  std::vector<std::byte> bytes;
};

// Converts F64 (rounding to nearest), F32, F16 and BF16 to f32, U32 to u32, other integers to i32,
// and BOOL to bool. Throws IoError, naming `file` and the tensor, if the dtype is not supported or
// a value is out of range.
Elements to_elements(const std::string& file, const std::string& name, StoredTensor tensor);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
