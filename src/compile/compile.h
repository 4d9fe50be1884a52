// SPDX-License-Identifier: MIT
// From a traced graph to a program: the one place that knows the passes and their order.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "plan/plan.h"

namespace tensorgrad {

struct CompileRequest {
  std::string name;  // of the program, for dumps: "train", "forward"
  Graph graph;       // as traced; outputs are set
  // Training: gradients of `loss` with respect to `wrt` are appended, and given to `extend`, which
  // appends the optimizer.
  ValueId loss = kNoValue;
  std::vector<ValueId> wrt;
  std::function<void(Graph& graph, const std::vector<ValueId>& grads)> extend;
  int max_bindings = 8;
  bool split_rows = true;  // for a device that shares a row among few of its threads
  PlanOptions plan;
};

struct Compiled {
  Graph graph;  // simplified, before fusion: what the reference interprets
  Graph fused;
  Program program;
  std::vector<std::pair<std::string, double>> passes;  // name, milliseconds
  double milliseconds = 0;
};

// Environment switches (TENSORGRAD_SKIP, _DEBUG, _DUMP) apply.
Compiled compile_graph(CompileRequest request);

}  // namespace tensorgrad
