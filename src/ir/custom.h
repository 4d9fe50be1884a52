// SPDX-License-Identifier: MIT
// The kernels of ops that users define. Nodes and launches name them by a number.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/node.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// One op on inputs of certain types.
struct CustomKernel {
  std::string name;
  std::vector<Type> inputs;
  Type result;
  // Writes elements [first, last) of the result; empty: there is none.
  std::function<void(std::span<const void* const> inputs, void* result, std::int64_t first,
                     std::int64_t last)>
      cpu;
  std::string wgsl;  // functions, `element` among them; empty: there is none
};

// The number of a kernel, from now on until the process ends.
std::int64_t add_custom(std::shared_ptr<const CustomKernel> kernel);
// Null where no kernel has that number.
std::shared_ptr<const CustomKernel> find_custom(std::int64_t number);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
