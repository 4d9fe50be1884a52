// SPDX-License-Identifier: MIT
// Well-formed graphs by seed: pointwise ops, reductions, views, products, gather, scatter, concat,
// the gradients of a random loss, and updates of states that read old and new values.
#pragma once

#include "support/sketch.h"

namespace tensorgrad::testing {

struct RandomGraph {
  Graph graph;
  ValueMap leaves;
};

struct RandomGraphOptions {
  int ops = 14;
  bool gradients = true;
  bool updates = true;
  std::int64_t size = 5;  // of an axis of a leaf, at most
};

RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options = {});

}  // namespace tensorgrad::testing
