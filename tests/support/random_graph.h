// SPDX-License-Identifier: MIT
// Random valid training graphs. A graph has a forward pass of ops of all families with shared
// parts, several losses, their gradients, sometimes second-order gradients, states, and the update
// of one of the optimizers, built as in compile().
#pragma once

#include "support/graph_builder.h"
#include "support/sanitized.h"

namespace tensorgrad::testing {

struct RandomGraph {
  Graph graph;
  ValueMap leaves;  // those of fill_leaves() for the seed
};

struct RandomGraphOptions {
  int ops = 14;           // steps of the forward pass; most are one op, some composite
  std::int64_t size = 5;  // maximum size of an axis of a leaf
};

// Returns the number of graphs to try. It is smaller with a sanitizer, which makes each ten times
// slower. ./dev test tries all of them in the Release build.
constexpr std::uint64_t how_many(std::uint64_t released) {
  return kSanitized ? (released + 19) / 20 : released;
}

RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options = {});

}  // namespace tensorgrad::testing
