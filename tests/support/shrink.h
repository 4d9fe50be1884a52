// SPDX-License-Identifier: MIT
// Makes a graph that fails smaller, for as long as it goes on failing.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace tensorgrad::testing {

// `fails` must be true of `graph`. Results are dropped, nodes replaced by an operand, by a literal
// or by an input, and sizes lowered; what `fails` is given is well-formed.
Graph shrink(Graph graph, const std::function<bool(const Graph&)>& fails);

}  // namespace tensorgrad::testing
