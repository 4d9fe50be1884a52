// SPDX-License-Identifier: MIT
// Concats of many parts as trees of smaller ones.
#pragma once

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// After: no concat has more than `most_parts` (at least 2) inputs. A launch that makes one reads a
// buffer for each of its parts, so this is what a limit on bindings asks for.
Graph limit_concat(const Graph& graph, int most_parts);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
