// SPDX-License-Identifier: MIT
// Kernels of user-defined ops. Nodes and launches refer to them by number.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/node.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A user-defined op for inputs of certain types.
struct CustomKernel {
  std::string name;
  std::vector<Type> inputs;
  Type result;
  // Writes elements [first, last) of the result. Empty if there is no CPU implementation.
  std::function<void(std::span<const void* const> inputs, void* result, std::int64_t first,
                     std::int64_t last)>
      cpu;
  std::string wgsl;  // functions, including `element`; empty if there is none
};

// Registers a kernel and returns its number, which is valid until the process ends.
std::int64_t add_custom(std::shared_ptr<const CustomKernel> kernel);
// Returns the kernel with this number, or null.
std::shared_ptr<const CustomKernel> find_custom(std::int64_t number);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
