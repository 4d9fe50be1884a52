// SPDX-License-Identifier: MIT
// Finds the first pass after which two devices, or the graph before and after it, disagree.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compile/debug/graph_run.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct BisectOptions {
  std::shared_ptr<Device> a;  // null: the reference interpreter
  std::shared_ptr<Device> b;
  std::span<const GraphPass> passes = graph_passes();  // followed by late_passes() for `b`
  double tolerance = kOpTolerance;
};

struct BisectReport {
  std::vector<std::string> checked;  // one line per pass checked, in order
  // The first disagreement; empty if there is none.
  std::string pass;  // e.g. "simplify", or "as given" for the graph before all passes
  std::string what;  // the value, the element, and both results
  SourceLocation location;
};

BisectReport bisect(const Graph& graph, const LeafWords& leaves, const BisectOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
