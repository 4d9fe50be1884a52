// SPDX-License-Identifier: MIT
// IDX files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

enum class IdxElement : std::uint8_t { kU8, kI8, kI16, kI32, kF32, kF64 };

std::size_t idx_element_bytes(IdxElement element);

// "u8", "i8", "i16", "i32", "f32", "f64".
std::string_view to_string(IdxElement element);

// One IDX file: rank 1 or more, every size at least 1, elements row-major in the host's byte order.
struct IdxArray {
  Shape shape;
  IdxElement element = IdxElement::kU8;
  std::vector<std::byte> bytes;
};

IdxArray read_idx(const std::string& path);

// `bytes` is the file, perhaps gzipped; `name` stands for it in messages.
IdxArray parse_idx(std::span<const std::byte> bytes, std::string_view name);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
