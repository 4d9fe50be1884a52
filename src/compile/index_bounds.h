// SPDX-License-Identifier: MIT
// Which integer inputs are used as indices, and how large they may be.
#pragma once

#include <map>
#include <string>

#include "ir/graph.h"

namespace tensorgrad {

struct IndexBound {
  std::int64_t size = 0;  // every element must lie in [0, size)
  Site site;              // of the op that uses it
  std::string op;
};

// By the name of the input or data leaf. Followed from the index of a gather or scatter back
// through views, concatenations and gathered data; not through arithmetic, whose results are
// guarded in the kernels (zero, or dropped).
std::map<std::string, IndexBound> index_bounds(const Graph& graph);

}  // namespace tensorgrad
