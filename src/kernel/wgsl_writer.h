// SPDX-License-Identifier: MIT
// A launch printed as a WGSL compute shader. Shapes and strides are constants in the text; every
// index is in bounds by construction, and those that come from data or from the hyper row are
// guarded, so that the shader may run without the driver's bounds checks. Needs no device.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "kernel/program.h"

namespace tensorgrad {

// What the device allows, and overrides for tests and tuning (0: chosen by size).
struct WgslOptions {
  int max_threads = 256;  // per workgroup
  std::int64_t max_workgroup_bytes = 16 << 10;
  int lanes =
      0;  // threads that share one result, kScan: one line (a power of two); not kMap, kSort
  // kContraction: 8, 16, 32, 33 (k in slices), 64, 96 (128 x 64) or 128; kScatter: 2 for blocks of results; both: 1
  // for every result by its own lanes; kSort: elements sorted at a time, at least 2.
  int tile = 0;
  bool separate = false;  // launches that could be one kernel are none, for comparison
  bool joined = false;  // as many threads as others have, so that launches can be one kernel
  double crowd = 1;     // kContraction: results of products beside it with its k, over its own
  std::set<int> scalar_buffers = {};  // not to be read or written as vectors
};

struct WgslKernel {
  std::string header;  // comment lines: name, ops with their shapes, the user's lines
  std::string body;    // equal bodies are equal kernels
  std::uint32_t groups_x = 1, groups_y = 1;
  int threads = 1;  // per workgroup
  std::int64_t workgroup_bytes = 0;
  bool uses_hyper = false;  // group 1, binding 0 is the hyper row

  [[nodiscard]] std::string text() const { return header + body; }
};

// Group 0, binding i is launch.bindings[i]; the entry point is "main".
WgslKernel write_wgsl(const Launch& launch, const WgslOptions& options = {});

// The text alone.
std::string emit_wgsl(const Launch& launch, const WgslOptions& options = {});

}  // namespace tensorgrad
