// SPDX-License-Identifier: MIT
// Helpers: random numbers, temporary paths, and all state of a trainer as bytes.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

// Returns pseudorandom numbers between -1 and 1.
inline std::vector<float> numbers(std::int64_t count, unsigned seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    values.push_back(static_cast<float>(seed >> 8) * 0x1p-23F - 1);
  }
  return values;
}

inline std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_" + name))
      .string();
}

// Uploads 22 rows of the datasets "x" with three columns and "y" with two.
inline void give_data(TrainerBase& trainer) {
  trainer.upload_data("x", numbers(22 * 3, 1));
  trainer.upload_data("y", numbers(22 * 2, 2));
}

using Bits = std::map<std::string, std::vector<std::byte>>;
inline Bits bits_of(const std::map<std::string, HostTensor>& tensors) {
  Bits bits;
  for (const auto& [name, tensor] : tensors) bits[name] = tensor.bytes;
  return bits;
}
inline Bits everything(const TrainerBase& trainer) {
  Bits bits = bits_of(trainer.download_params());
  bits.merge(bits_of(trainer.download_optimizer()));
  return bits;
}

}  // namespace tensorgrad::testing
