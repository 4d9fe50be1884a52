// SPDX-License-Identifier: MIT
// Well-formed graphs by seed: pointwise ops, reductions, views, products, gather, scatter, concat,
// scans, sorts, the gradients of a random loss, and updates of states that read old and new values.
#pragma once

#include "support/sanitized.h"
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

// How many graphs to try: fewer with a sanitizer, which makes each ten times slower; ./dev test
// tries all of them in the Release build.
constexpr std::uint64_t how_many(std::uint64_t released) {
  return kSanitized ? (released + 4) / 5 : released;
}

RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options = {});

}  // namespace tensorgrad::testing
