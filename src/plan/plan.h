// SPDX-License-Identifier: MIT
// Graph to Program: launch order, places in memory, and scalar programs. Pure functions, no device.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ir/graph.h"
#include "kernel/program.h"

namespace tensorgrad {

struct PlanOptions {
  std::int64_t params_elements = 0;  // size of the parameter arena
  std::map<std::string, int> rings;  // scalar outputs that keep that many steps' values
  std::int64_t memory_budget = 0;    // bytes; 0: none
};

// `graph` is fused. Throws UserError where the plan needs more than the budget: it names the ten
// largest tensors and the user's lines.
Program plan(const Graph& graph, const PlanOptions& options);

// The name of the hyper word that says at which place of their rings this step's outputs go.
inline constexpr const char* kRingScalar = "_ring";

}  // namespace tensorgrad
