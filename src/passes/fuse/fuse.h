// SPDX-License-Identifier: MIT
// Groups nodes into launches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "kernel/gpu_model.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A reduction to fewer rows leaves most of a GPU idle, so only small maps are fused with it.
inline constexpr std::int64_t kFewRows = 32;

// Longest line that is sorted in workgroup memory. A value and an index of each element take the 16
// KiB that every device has. A longer line is sorted in the buffer of the resulting indices, by
// comparing the elements in place, so nothing can be fused with it.
inline constexpr std::int64_t kMaxSortedInside = 2048;

struct FuseOptions {
  int max_bindings = 8;  // maximum number of storage buffers of a launch
  bool enabled = true;   // false: one launch per node
  // Counts a leaf and its new value as one buffer. If planning finds that they cannot share one,
  // fusion must be repeated with this set to false.
  bool assume_in_place = true;
  // True if one binding can hold all parameters, and so all gradients. If false, each parameter
  // that a launch reads counts as a buffer, since fit_bindings() may bind each separately. Bias
  // gradients are then not fused with weight gradients, because both are written through one
  // binding.
  bool arena_fits_binding = true;
  // Ends of the buckets of sharded parameters, in elements of the arena. The parameters of a bucket
  // have a buffer of their own. Empty: parameters are not sharded.
  std::vector<std::int64_t> bucket_ends = {};
  // Maximum number of columns of a product whose epilogue may contain reductions over its rows
  // (layer norm). 0: no such epilogues.
  int row_epilogue_columns = 0;
  // If true, a product of few rows may compute the rows of its first operand (fuse_row_operands.h).
  bool row_operands = false;
  // If true, a concat may compute its operands. Vector programs of the CPU would compute all
  // operands at each element.
  bool concat_operands = false;
  // Values with fewer elements stay in a cache, so that recomputing them saves nothing (sink.h).
  std::int64_t cached_elements = 4096;
  GpuModel gpu = {};  // for the passes before fusion that split what is long
};

// Values that are stored, or have a launch of their own, because of a limit on the size of kernels.
struct FuseNote {
  std::string op;  // the op that the user called
  SourceLocation location;
  std::string bound;  // e.g. "a launch computes at most 1024 nodes"
  int count = 1;      // number of values of this op and line
};

// Assigns a group to every node that needs a launch. Groups are numbered such that each reads only
// results of lower groups or its own. Views, leaves and generators have no group. Neither do
// pointwise nodes that are cheap enough for each reader to recompute. Runs limit_concat() and
// materialize() first. The nodes of `graph` must not have groups.
//
// A group is one of:
// - a map: pointwise nodes over the same elements
// - a row group: a map with reductions over its last axes and pointwise nodes over the rows
//   (softmax, layer norm, cross-entropy and their backward passes)
// - a reduction over other axes with pointwise nodes over its result
// - a contraction, scatter, scan or sort of short lines with pointwise nodes over its result
// - attention, a selective scan, a sort of long lines or a custom kernel
//
// A contraction can also include the sum of an operand over k: a bias gradient with its weight
// gradient. A contraction of few rows can include a map or row group that computes its first
// operand.
//
// If `notes` is not null, appends the values that a limit has prevented from being fused.
Graph fuse(const Graph& graph, const FuseOptions& options, std::vector<FuseNote>* notes = nullptr);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
