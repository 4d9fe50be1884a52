// SPDX-License-Identifier: MIT
// MBJS, the checkpoints of mambacode.js: what is in the file. lm/mbjs.h makes models of it.
// docs/formats.md describes the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

enum class MbjsLayer : std::uint8_t { kMamba1, kMamba2, kMamba3, kAttention };

struct MbjsFile {
  int version = 2;                     // 3: the values are f16 in the file
  std::vector<MbjsLayer> layers = {};  // version 1 does not say: empty, and all are kMamba1
  std::vector<std::vector<float>> tensors = {};  // without names or shapes, in the file's order

  bool operator==(const MbjsFile&) const = default;
};

// IoError, naming the file and the byte: missing, another magic number or version, a kind of layer
// that there is not, padding that is not zero, fewer or more bytes than the sizes say.
MbjsFile read_mbjs(const std::string& path);
// The same for bytes in memory; `name` stands for the file in messages.
MbjsFile parse_mbjs(std::span<const std::byte> bytes, std::string_view name);

// Writes it atomically. Version 3 rounds to the nearest f16, ties to even, subnormal ones too.
// UserError: another version than 1, 2 and 3, layers in version 1 that are not kMamba1, more values
// in a tensor than fit, in version 3 a finite value that f16 does not hold (with the tensor and the
// value's place). IoError: a path that cannot be written.
void write_mbjs(const std::string& path, const MbjsFile& file);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
