// SPDX-License-Identifier: MIT
// How many elements a tensor may have.
#pragma once

#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Elements that a device can index.
inline constexpr std::int64_t kMaxTensorElements = 0x7fffffff;

// While it lives, this thread's graphs may have larger tensors. For graphs that no device runs
// (trace()), in which an optimizer sees all parameters as one tensor.
class MaxElements {
 public:
  explicit MaxElements(std::int64_t elements);
  MaxElements(const MaxElements&) = delete;
  MaxElements& operator=(const MaxElements&) = delete;
  ~MaxElements();
  // What holds now.
  [[nodiscard]] static std::int64_t now();

 private:
  std::int64_t before_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
