// SPDX-License-Identifier: MIT
// Cuts long scatters to few results in two.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Of a scatter, each result looks at all indices of its line, so a long line that goes to few
// places (the gradient of an embedding of few words) leaves a GPU idle and is read many times. It
// becomes one of each of `parts` stretches, and the sum of what these give: [.., count, ..] ->
// [.., parts, size, ..] -> [.., size, ..]. The number of parts divides the line and depends on the
// shape alone.
//
// `always`: each in two or more, whatever it costs.
//
// After the algebra and the last cse; before fuse.
Graph split_scatter(const Graph& graph, bool always = false);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
