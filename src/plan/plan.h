// SPDX-License-Identifier: MIT
// Graph to Program: launch order, memory placement and scalar programs. Pure functions that need no
// device.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "kernel/gpu_model.h"
#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Consecutive parameters of the arena, whose values the ranks of distributed training exchange at
// once. Each rank keeps an equal part.
struct ParameterBucket {
  std::int64_t begin = 0, elements = 0;  // multiples of 64 times the number of ranks
  [[nodiscard]] std::int64_t end() const { return begin + elements; }
};

struct PlanOptions {
  std::int64_t params_elements = 0;  // size of the buffer of parameters
  std::map<std::string, int> rings;  // scalar outputs that keep the values of this many steps
  std::int64_t memory_budget = 0;    // in bytes; 0: none
  // Limits of the device, in bytes; 0: none.
  std::int64_t max_binding_bytes = 0, max_buffer_bytes = 0;
  bool any_size = false;   // a launch that cannot be split may exceed the limit: no device runs it
  int max_bindings = 0;    // storage buffers per launch; 0: no limit
  bool stores_f16 = true;  // false: f16 values are stored as f32
  // Storage buffers of a kernel that runs concurrent small launches; 0: none are concurrent.
  int join_bindings = 0;
  // Marks small launches that can run as fused sequences (Launch::fused_sequence). Their kernels
  // are also limited to join_bindings.
  bool fused_sequences = false;
  GpuModel gpu = {};  // orders and joins launches
  // An output that the host replaces bucket by bucket while the launches run; see split_exchange().
  std::string exchange;
  std::int64_t bucket_bytes = 0;
  // The beginning of the arena, if parameters are sharded. The buffer of parameters then has only
  // this rank's parts of the buckets, followed by the rest of the arena. See Program::host_steps.
  std::vector<ParameterBucket> buckets = {};
  int shards = 1;  // number of ranks that divide the buckets
};

// Returns the dtype in which values of `dtype` are stored.
constexpr DType dtype_in_memory(DType dtype, bool stores_f16) {
  return dtype == DType::kF16 && !stores_f16 ? DType::kF32 : dtype;
}

// Plans a fused graph. Throws UserError if the plan exceeds the memory budget (naming the ten
// largest tensors with their locations), or if a buffer or binding exceeds the device's limits.
Program plan(const Graph& graph, const PlanOptions& options);

// Name of the runtime scalar that holds the position of this step's outputs in their rings.
inline constexpr const char* kRingScalar = "_ring";

}  // namespace tensorgrad::inline TENSORGRAD_ABI
