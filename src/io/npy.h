// SPDX-License-Identifier: MIT
// Arrays of NumPy as stored tensors, and the ZIP archives that hold several.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/data/safetensors.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// The array of a .npy file, row-major and little-endian. IoError, naming `file`: malformed, or
// elements that StoredTensor has no name for.
StoredTensor parse_npy(std::span<const std::byte> bytes, const std::string& file);
// The head of a .npy file; the elements follow, four bytes each but two for F16 and one for BOOL.
std::string npy_head(const std::string& dtype, const Shape& shape);

struct ZipMember {
  std::string name;
  std::vector<std::byte> bytes;
};
// All members, inflated. IoError, naming `file`: malformed, a wrong checksum, encrypted, compressed
// by another method than deflate.
std::vector<ZipMember> read_zip(std::span<const std::byte> bytes, const std::string& file);
// Writes members without compression. IoError: more than the format without extensions may hold.
void write_zip(const FileSink& sink, const std::vector<ZipMember>& members);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
