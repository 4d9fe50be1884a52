// SPDX-License-Identifier: MIT
// Safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Tensor of a safetensors file. Sizes of 0 are allowed.
struct StoredTensor {
  std::string dtype;  ///< Name in the format: "F32", "I32", "U32", "BOOL", "F16", "BF16", ...
  Shape shape;        ///< Empty for a scalar.
  std::vector<std::byte> data;  ///< Little-endian, row-major, without padding.

  bool operator==(const StoredTensor&) const = default;
};

/// Content of a safetensors file.
struct StoredFile {
  std::map<std::string, StoredTensor> tensors;  ///< By name.
  std::map<std::string, std::string> metadata;  ///< By key: the strings of `__metadata__`.

  /// True if the file has checksums: a CRC-32 of the header and of each tensor. They are in the
  /// metadata `tensorgrad.checksum`, which is not part of `metadata`.
  bool checksums = false;

  bool operator==(const StoredFile&) const = default;
};

/// Returns the size of one element of a safetensors dtype in bytes, 0 if the dtype is unknown.
std::size_t stored_dtype_bytes(std::string_view dtype);

/// Returns the safetensors name of an element type: "F32", "F16", "I32", "U32" or "BOOL".
std::string_view stored_dtype(DType dtype);

/// Returns the element type of a tensor whose data can be used without conversion: F32, I32 or U32.
/// Throws IoError with the names of the file and the tensor if it has another dtype.
DType element_type(const std::string& file, const std::string& name, const StoredTensor& tensor);

/// Statistics of the values of a tensor.
struct StoredRange {
  double min = 0;          ///< Smallest finite value; 0 if there is none.
  double max = 0;          ///< Largest finite value; 0 if there is none.
  double mean = 0;         ///< Mean of the finite values; 0 if there are none.
  std::size_t count = 0;   ///< Number of values.
  std::size_t finite = 0;  ///< Number of values that are neither NaN nor infinite.
};

/// Returns the statistics of an F32, I32, U32 or BOOL tensor. For other dtypes, all are 0.
StoredRange stored_range(const StoredTensor& tensor);

/// Writes a safetensors file atomically. The same content always results in the same bytes. Throws
/// IoError if a dtype is unknown, the data does not fit the shape, a name or the metadata is not
/// UTF-8, a tensor is named `__metadata__`, or the file cannot be written.
void write_safetensors(const FileSink& sink, const StoredFile& file);

/// Reads a whole safetensors file. Throws IoError naming the file and the byte if it cannot be read
/// or is malformed, or naming the tensor if it differs from its checksum.
StoredFile read_safetensors(const FileSource& source);

/// Returns the metadata of a safetensors file: StoredFile::metadata. Reads and verifies only the
/// header. In a checkpoint, keys that start with `tensorgrad.` are those of the library. Throws
/// IoError naming the file and the byte if the header cannot be read or is malformed, differs from
/// its checksum, or does not fit the size of the file.
std::map<std::string, std::string> read_metadata(const FileSource& source);

/// Returns a text table with one tensor per line (name, dtype, shape, bytes, minimum, mean,
/// maximum), followed by the metadata. Unprintable bytes in names are escaped.
std::string dump_safetensors(const StoredFile& file);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
