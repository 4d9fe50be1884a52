// SPDX-License-Identifier: MIT
// The elements of a stored tensor as they lie in memory: four bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/data/safetensors.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// The upper half of a float, as a float: exact.
float from_bfloat16(std::uint16_t bits);

struct Elements {
  DType dtype = f32;
  std::vector<std::byte> bytes;
};

// F64 (rounded to the nearest), F32, F16 and BF16 become f32; integers become i32, but U32 u32;
// BOOL becomes bool. IoError, naming `file` and the tensor: another dtype, a value that does not
// fit.
Elements to_elements(const std::string& file, const std::string& name, StoredTensor tensor);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
