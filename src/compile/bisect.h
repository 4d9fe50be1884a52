// SPDX-License-Identifier: MIT
// Finds the first pass after which two devices, or a graph before and after, disagree.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compile/graph_run.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct BisectOptions {
  std::shared_ptr<Device> a;  // null: the reference
  std::shared_ptr<Device> b;
  std::span<const GraphPass> passes = graph_passes();  // then late_passes() for `b`
  double tolerance = kOpTolerance;
};

struct BisectReport {
  std::vector<std::string> checked;  // a line for each stage that was looked at, in order
  // Where the two disagree; empty where they do not.
  std::string pass;  // "simplify"; "as given" where the graph itself is computed differently
  std::string what;  // the value, the element, what each side gives
  SourceLocation location;
};

BisectReport bisect(const Graph& graph, const LeafWords& leaves, const BisectOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
