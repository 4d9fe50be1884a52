// SPDX-License-Identifier: MIT
// The types of tensors in GGUF files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

struct GgufType {
  std::uint32_t number = 0;  // in files
  std::string_view name = {};
  std::uint64_t elements = 1;  // of a block
  std::uint64_t bytes = 0;     // of a block
};

// Null if there is none.
const GgufType* gguf_type(std::uint32_t number);
const GgufType* gguf_type(std::string_view name);

// The bytes of a tensor. Nothing if they exceed 63 bits or a block is not within a row.
std::optional<std::uint64_t> gguf_bytes(const GgufType& type, const Shape& shape);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
