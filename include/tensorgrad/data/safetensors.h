// SPDX-License-Identifier: MIT
// Safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// One tensor as it lies in a file: little-endian, row-major, no padding. A size may be 0 here.
struct StoredTensor {
  std::string dtype;  // safetensors name: "F32", "I32", "U32", "BOOL", "F16", "BF16", "I64", ...
  Shape shape;
  std::vector<std::byte> data;

  bool operator==(const StoredTensor&) const = default;
};

// A whole safetensors file in memory. For every tensor data.size() == numel(shape) * dtype size.
struct StoredFile {
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> metadata;

  bool operator==(const StoredFile&) const = default;
};

// Bytes of one element of a safetensors dtype; 0 if the dtype is not known.
std::size_t stored_dtype_bytes(std::string_view dtype);

// The safetensors name of an element type: "F32", "I32", "U32", "BOOL".
std::string_view stored_dtype(DType dtype);

// The type of the tensor `name` of `file` in memory. IoError where it is none of F32, I32 and U32,
// which alone lie in memory as in a file.
DType element_type(const std::string& file, const std::string& name, const StoredTensor& tensor);

// The values of a tensor of F32, I32, U32 or BOOL; NaN and infinity are not among the `finite`.
struct StoredRange {
  double min = 0, max = 0, mean = 0;  // of the finite ones, 0 where there is none
  std::size_t count = 0, finite = 0;
};

// All 0 for other dtypes.
StoredRange stored_range(const StoredTensor& tensor);

// Writes `file` to `path` atomically. IoError: an unknown dtype, data that does not fit the shape,
// a name that is not UTF-8 or is "__metadata__", or a path that cannot be written.
void write_safetensors(const std::string& path, const StoredFile& file);

// Reads a whole file. IoError: missing, unreadable, or malformed in any way.
StoredFile read_safetensors(const std::string& path);

// The same for bytes in memory; `name` stands for the file in messages.
StoredFile parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

// A text table, one tensor a line (name, dtype, shape, bytes; its stored_range()), then the
// metadata. Unprintable bytes in names are escaped.
std::string dump_safetensors(const StoredFile& file);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
