// SPDX-License-Identifier: MIT
// Differential fuzzing: the random graph of a seed is run in several ways, and made small where
// they disagree.
#pragma once

#include "support/differential.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {

// The graph of a seed as fuzzing makes it: sizes and lengths follow the seed.
Graph fuzzed_graph(std::uint64_t seed);

// A finding before it runs is one of the way "making".
Verdict fuzz(std::uint64_t seed, const std::vector<Way>& ways);

// Of a graph that compare() found something in: a small one of which the same way gives something
// of that kind, as IR text. Its first line is a comment with the seed and what is wrong; `tg run`
// and `tg bisect` take it.
std::string shrunken(const Graph& graph, std::uint64_t seed, const std::vector<Way>& ways,
                     const Finding& finding);
// The same of the graph of a seed.
std::string shrunken(std::uint64_t seed, const std::vector<Way>& ways, const Finding& finding);

}  // namespace tensorgrad::testing
