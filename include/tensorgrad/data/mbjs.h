// SPDX-License-Identifier: MIT
// MBJS files, the checkpoints of mambacode.js: the raw tensors. lm/mbjs.h converts them to models.
// docs/formats.md describes the format.
#pragma once

#include <cstdint>
#include <vector>

#include "tensorgrad/data/file_source.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Kind of a layer in an MBJS file.
enum class MbjsLayer : std::uint8_t {
  kMamba1,    ///< Mamba, the only kind that lm::load_mbjs() converts.
  kMamba2,    ///< Mamba-2.
  kMamba3,    ///< Mamba-3.
  kAttention  ///< Self-attention.
};

/// Content of an MBJS file.
struct MbjsFile {
  int version = 2;                     ///< 1, 2 or 3; version 3 stores values as f16.
  std::vector<MbjsLayer> layers = {};  ///< Empty in version 1, whose layers are all kMamba1.
  std::vector<std::vector<float>> tensors = {};  ///< In file order, without names and shapes.

  bool operator==(const MbjsFile&) const = default;
};

/// Reads an MBJS file. Throws IoError naming the file and the byte if it cannot be read, has
/// another magic number, version or layer kind, has nonzero padding, or is shorter or longer than
/// its sizes say.
MbjsFile read_mbjs(const FileSource& source);

/// Writes an MBJS file atomically. Version 3 rounds to the nearest f16, ties to even, including
/// subnormals. Throws UserError if the version is not 1, 2 or 3, if version 1 has a layer other
/// than kMamba1, or if a tensor has 2^32 or more values. In version 3, also throws UserError naming
/// the tensor and the index if a finite value does not fit in f16. Throws IoError if the file
/// cannot be written.
void write_mbjs(const FileSink& sink, const MbjsFile& file);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
