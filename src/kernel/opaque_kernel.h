// SPDX-License-Identifier: MIT
// Kernels written by hand. This record is all that fusion, planning and verification know of one:
// they never ask which kernel it is. Backends find its code by its name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/gpu_model.h"
#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct OpaqueInput {
  std::int64_t size = 1;  // elements
  int operand = -1;       // number of the op's operand; -1: absent
  bool by_row = true;     // a row reads only its share of the elements
  // Values that only such inputs read are not stored: the kernel computes their elements itself.
  bool computed_inside = false;

  [[nodiscard]] bool absent() const { return operand < 0; }
};

struct OpaqueResult {
  std::int64_t size = 1;  // elements; each row writes its share
  bool optional = false;  // a launch need not store it
};

// Kernels that have parameters of their own derive from this.
struct OpaqueKernel {
  OpaqueKernel() = default;
  OpaqueKernel(const OpaqueKernel&) = delete;
  OpaqueKernel& operator=(const OpaqueKernel&) = delete;
  virtual ~OpaqueKernel() = default;

  std::string name;    // kind of launch in dumps and profiles: "attention"
  std::string label;   // name of the launch; empty: that of its ops
  std::string domain;  // sizes in dumps
  // Rows that can be computed separately. If a buffer exceeds the binding limit, several launches
  // share them.
  std::int64_t rows = 1;
  std::vector<OpaqueInput> inputs;
  std::vector<OpaqueResult> results;
  std::int64_t flops = 0;  // estimate for reports
  // The time of a small launch, to group it with others that take as long.
  double GpuModel::* microseconds = &GpuModel::map_microseconds;
  bool concurrent = false;      // small launches may run concurrently
  bool uses_subgroups = false;  // on a GPU that has them
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
