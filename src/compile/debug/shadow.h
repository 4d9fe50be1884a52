// SPDX-License-Identifier: MIT
// TENSORGRAD_SHADOW=1: runs a program launch by launch and evaluates each on the reference too,
// from the contents of device memory before it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "compile/debug/error_bound.h"
#include "compile/debug/memory_map.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class Shadow {
 public:
  // `program` was planned from `fused` with these options; `buffers` are those of the program.
  // Device and program must outlive the Shadow.
  Shadow(Device& device, const Program& program, std::span<const BufferHandle> buffers,
         const Graph& fused, const PlanOptions& options);

  // Runs once. Throws InternalError with the location at the first launch that stores a value
  // different from the reference, or that reads a value which another launch has overwritten.
  void run(const RuntimeScalars& row);
  // Replaces the buffer of number `changed`.
  void rebind(std::span<const BufferHandle> buffers, int changed);

 private:
  struct SeparateLaunch {
    Program program;  // of one launch
    std::unique_ptr<Executable> executable;
  };

  [[nodiscard]] std::vector<std::uint32_t> words_at(const BufferRange& place, const Type& type);
  [[nodiscard]] BufferRange stored_at(ValueId id, const RuntimeScalars& row) const;
  [[nodiscard]] double scalar(const Node& node, const RuntimeScalars& row) const;
  void read(std::size_t launch, ValueId id);
  const WithErrorBound& evaluate(ValueId id, const RuntimeScalars& row);
  void check(std::size_t launch, const RuntimeScalars& row);

  Device& device_;
  const Program& program_;
  std::vector<BufferHandle> buffers_;
  Graph graph_;
  PlanOptions options_;
  MemoryMap map_;
  std::vector<SeparateLaunch> separate_;
  std::map<ValueId, std::vector<std::uint32_t>> seen_;  // of this run: as computed or first read
  std::map<ValueId, WithErrorBound> values_;            // of this launch
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
