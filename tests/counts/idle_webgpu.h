// SPDX-License-Identifier: MIT
// What the WebGPU library that computes nothing (idle_webgpu.cc) was asked for, by all threads.
#pragma once

#include <atomic>
#include <cstdint>

namespace tensorgrad::testing {

struct IdleWebGpu {
  std::atomic<int> passes = 0, dispatches = 0, submits = 0;
  std::atomic<int> buffers = 0;  // made so far
  // Of buffers that there are: those that kernels read and write, and the others (staging, rows of
  // scalars).
  std::atomic<std::int64_t> storage_bytes = 0, most_storage_bytes = 0, other_bytes = 0;
  std::atomic<int> pipelines = 0;  // made so far
  // Calls that make a pipeline, at the same time. Where so many are expected, each waits until they
  // have come; a call that has waited for `patience_ms` gives it up for all.
  std::atomic<int> making = 0, most_making = 0, expected_making = 0;
  int patience_ms = 10000;
};

}  // namespace tensorgrad::testing

extern "C" tensorgrad::testing::IdleWebGpu* tensorgrad_idle_webgpu();
