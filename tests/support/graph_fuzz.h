// SPDX-License-Identifier: MIT
// Differential fuzzing: runs the random graph of a seed in several ways, and shrinks it if they
// disagree.
#pragma once

#include "support/differential.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {

// Returns the graph of a seed. Its sizes and length depend on the seed.
Graph fuzzed_graph(std::uint64_t seed);

// Compares the graph of a seed in several ways. An error before it runs is reported as the way
// "making".
Verdict fuzz(std::uint64_t seed, const std::vector<Way>& ways);

// Shrinks a graph with a finding of compare() while the same way still has such a finding. Returns
// it as IR text for `tg run` and `tg bisect`. The first line is a comment with the seed and the
// finding.
std::string shrunken(const Graph& graph, std::uint64_t seed, const std::vector<Way>& ways,
                     const Finding& finding);
// Shrinks the graph of a seed.
std::string shrunken(std::uint64_t seed, const std::vector<Way>& ways, const Finding& finding);

}  // namespace tensorgrad::testing
