// SPDX-License-Identifier: MIT
// Calls to the WebGPU library that computes nothing (idle_webgpu.cc), by all threads.
#pragma once

#include <atomic>
#include <cstdint>

namespace tensorgrad::testing {

struct IdleWebGpu {
  std::atomic<int> passes = 0, dispatches = 0, submits = 0;
  std::atomic<int> buffers = 0;                        // created so far
  std::atomic<int> bind_groups = 0, error_scopes = 0;  // created, and closed, so far
  // Existing buffers: those that kernels read and write, and the others (staging buffers, rows of
  // scalars).
  std::atomic<std::int64_t> storage_bytes = 0, most_storage_bytes = 0, other_bytes = 0;
  std::atomic<int> pipelines = 0;  // created so far
  // Concurrent calls that create a pipeline. If `expected_making` of them are expected, each call
  // waits until all have arrived. If one has waited for `patience_ms`, none waits any longer.
  std::atomic<int> making = 0, most_making = 0, expected_making = 0;
  int patience_ms = 10000;
};

}  // namespace tensorgrad::testing

extern "C" tensorgrad::testing::IdleWebGpu* tensorgrad_idle_webgpu();
