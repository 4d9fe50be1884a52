// SPDX-License-Identifier: MIT
// Well-formed training graphs by seed: a forward pass of ops of all families with shared parts,
// several losses, their gradients, now and then a gradient of a gradient, states, and the update by
// one of the optimizers, made as compile() makes it.
#pragma once

#include "support/sanitized.h"
#include "support/sketch.h"

namespace tensorgrad::testing {

struct RandomGraph {
  Graph graph;
  ValueMap leaves;  // what fill_leaves() gives for the seed
};

struct RandomGraphOptions {
  int ops = 14;           // steps of the forward pass; most are one op, some a composite
  std::int64_t size = 5;  // of an axis of a leaf, at most
};

// How many graphs to try: fewer with a sanitizer, which makes each ten times slower; ./dev test
// tries all of them in the Release build.
constexpr std::uint64_t how_many(std::uint64_t released) {
  return kSanitized ? (released + 19) / 20 : released;
}

RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options = {});

}  // namespace tensorgrad::testing
