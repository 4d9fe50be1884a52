// SPDX-License-Identifier: MIT
// The maximum number of elements of a tensor.
#pragma once

#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Maximum number of elements that a device can index.
inline constexpr std::int64_t kMaxTensorElements = 0x7fffffff;

// RAII guard that allows larger tensors in this thread's graphs. For graphs that no device runs
// (trace()), in which an optimizer sees all parameters as one tensor.
class MaxElements {
 public:
  explicit MaxElements(std::int64_t elements);
  MaxElements(const MaxElements&) = delete;
  MaxElements& operator=(const MaxElements&) = delete;
  ~MaxElements();
  // Returns the current limit.
  [[nodiscard]] static std::int64_t now();

 private:
  std::int64_t before_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
