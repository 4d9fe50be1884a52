// SPDX-License-Identifier: MIT
// IDX files, the format of MNIST.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Element type of an IDX file.
enum class IdxElement : std::uint8_t {
  kU8,   ///< Unsigned integers of 8 bits.
  kI8,   ///< Signed integers of 8 bits.
  kI16,  ///< Signed integers of 16 bits.
  kI32,  ///< Signed integers of 32 bits.
  kF32,  ///< Floating-point numbers of 32 bits.
  kF64   ///< Floating-point numbers of 64 bits.
};

/// Returns the size of an element in bytes.
std::size_t idx_element_bytes(IdxElement element);

/// Returns the name of an element type: "u8", "i8", "i16", "i32", "f32" or "f64".
std::string_view to_string(IdxElement element);

/// Array of an IDX file.
struct IdxArray {
  Shape shape;                           ///< At least one axis, all sizes at least 1.
  IdxElement element = IdxElement::kU8;  ///< Type of the elements in `bytes`.
  std::vector<std::byte> bytes;          ///< Row-major elements, in the byte order of the host.
};

/// Reads an IDX file, plain or gzipped. Throws IoError naming the file and the byte if it cannot be
/// read, is malformed, truncated, or followed by other data.
IdxArray read_idx(const FileSource& source);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
