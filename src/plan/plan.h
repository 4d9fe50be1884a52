// SPDX-License-Identifier: MIT
// Graph to Program: launch order, places in memory, and scalar programs. Pure functions, no device.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ir/graph.h"
#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct PlanOptions {
  std::int64_t params_elements = 0;  // size of the parameter arena
  std::map<std::string, int> rings;  // scalar outputs that keep that many steps' values
  std::int64_t memory_budget = 0;    // bytes; 0: none
  // What the device allows, in bytes; 0: anything.
  std::int64_t max_binding_bytes = 0, max_buffer_bytes = 0;
  bool any_size = false;   // a launch that cannot be cut may bind more: no device will run it
  int max_bindings = 0;    // storage buffers that a launch may bind; 0: any
  bool stores_f16 = true;  // else values of f16 lie in memory as f32
  // Storage buffers of a kernel that small launches may be joined to; 0: none are.
  int join_bindings = 0;
  // Small launches that follow each other block by block are marked as chains; join_bindings holds
  // for their kernels, too.
  bool chains = false;
};

// How a value of that type lies in memory.
constexpr DType dtype_in_memory(DType dtype, bool stores_f16) {
  return dtype == DType::kF16 && !stores_f16 ? DType::kF32 : dtype;
}

// `graph` is fused. Throws UserError where the plan needs more than the budget (it names the ten
// largest tensors and the user's lines), or more in a buffer or a binding than the device allows.
Program plan(const Graph& graph, const PlanOptions& options);

// The name of the hyper word that says at which place of their rings this step's outputs go.
inline constexpr const char* kRingScalar = "_ring";

}  // namespace tensorgrad::inline TENSORGRAD_ABI
