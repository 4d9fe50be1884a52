// SPDX-License-Identifier: MIT
// NumPy arrays as stored tensors, and ZIP archives of several arrays.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/data/safetensors.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// Returns the array of a .npy file, row-major and little-endian. Throws IoError, naming `file`, if
// it is malformed or StoredTensor does not support its element type.
StoredTensor parse_npy(std::span<const std::byte> bytes, const std::string& file);
// Returns the header of a .npy file. The elements follow: two bytes for F16, one for BOOL,
// otherwise four.
std::string npy_head(const std::string& dtype, const Shape& shape);

struct ZipMember {
  std::string name;
  std::vector<std::byte> bytes;
};
// Returns all members, inflated. Throws IoError, naming `file`, if the archive is malformed or
// encrypted, a checksum is wrong, or the compression method is not deflate.
std::vector<ZipMember> read_zip(std::span<const std::byte> bytes, const std::string& file);
// Writes members without compression. Throws IoError if the limits of the format without Zip64 are
// exceeded.
void write_zip(const FileSink& sink, const std::vector<ZipMember>& members);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
