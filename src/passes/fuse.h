// SPDX-License-Identifier: MIT
// Groups nodes into launches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A reduction to fewer rows than this leaves most of a GPU idle, so only small work may ride along.
inline constexpr std::int64_t kFewRows = 32;

// A line of a sort is kept in workgroup memory up to this length: a value and an index of each
// element in the 16 KiB that every device has. A longer one is sorted in the buffer that gets the
// indices, by comparing elements where they lie: so nothing may join it.
inline constexpr std::int64_t kMostSortedInside = 2048;

struct FuseOptions {
  int max_bindings = 8;  // storage buffers a launch may bind
  bool enabled = true;   // false: every node is a launch of its own
  // Count the new value of a leaf and the leaf as one buffer. The plan may find that they cannot
  // be; then fuse again without it.
  bool assume_in_place = true;
  // A binding may hold all parameters, and so all gradients. If not, each parameter that a launch
  // reads counts as a buffer, since fit_bindings() may bind each by itself. Bias gradients are then
  // not made in the launch of the weight gradient: both are written through one binding.
  bool arena_fits_binding = true;
  // A product of at most so many columns takes the reductions of its rows (a layer norm) along.
  int row_epilogue_columns = 0;
  // A value of fewer elements lies in a cache: computing it again saves nothing (sink.h).
  std::int64_t cached_elements = 4096;
};

// Values that a bound on the size of kernels has given a place in memory, or a launch of their own.
struct FuseNote {
  std::string op;  // what the user called
  SourceLocation location;
  std::string bound;  // "a launch computes at most 1024 nodes"
  int count = 1;      // values of that op and line
};

// Before: groups unset. After: every node that needs a launch has a group; launches are numbered so
// that each reads only what smaller numbers (or its own) make. Views, leaves and generators have
// none, and neither have pointwise nodes that are cheap enough to be computed anew by each reader.
// First, place_in_memory() adds copies of what must lie in memory and does not.
//
// What a group may hold:
// - a map: pointwise nodes over the same elements;
// - a row group: that, with reductions over the last axes of those elements and pointwise nodes
//   over the rows (softmax, layer norm, cross-entropy, with their backward passes);
// - a reduction over other axes, with pointwise nodes over its result;
// - one contraction (scatter, scan, sort of short lines) with the pointwise nodes over its result;
// a
//   contraction also with the sum of an operand over the contracted axis (a bias gradient beside a
//   weight gradient).
//
// If `notes` is given, it gets what bounds have cut.
Graph fuse(const Graph& graph, const FuseOptions& options, std::vector<FuseNote>* notes = nullptr);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
