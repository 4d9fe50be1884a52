// SPDX-License-Identifier: MIT
// A function's graph, to be looked at by programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/error.h"
#include "tensorgrad/tensor.h"
#include "tensorgrad/types.h"

namespace tensorgrad {

// One operation with its result, or a leaf: a value that comes from outside.
struct GraphNode {
  std::string op;           // "matmul", "sum", "input", "parameter" ...
  std::vector<int> inputs;  // the nodes that it reads, in the order in which the op takes them
  DType dtype = f32;        // of its result
  Shape shape;
  std::string name;  // of an input, a parameter, a state, a run-time scalar; else empty
  // What else the op is told, as IR text has it: {"axes", "[1]"}.
  std::vector<std::pair<std::string, std::string>> attributes;
  std::string origin;  // the composite that it is a part of: "gelu", "gelu.grad"; may be empty
  Site site;           // the user's line
};

// A graph as it was when it was asked for. A node is known by its index; those that it reads come
// before it.
//   for (const tg::GraphNode& node : forward.graph().nodes)
//     std::cout << node.op << to_string(node.shape) << "  at " << to_string(node.site) << '\n';
struct GraphView {
  std::vector<GraphNode> nodes;
  std::vector<std::pair<std::string, int>> outputs;  // name, node
  // Leaves that hold another node's value after the run.
  std::vector<std::pair<int, int>> updates;  // leaf, node
  std::string text;                          // as IR text, which the functions of debug.h take

  // For each node those that read it, in order, once per reading.
  [[nodiscard]] std::vector<std::vector<int>> users() const;
  // The index of the leaf of that op ("input", "parameter" ...) and name. Throws UserError with the
  // names there are.
  [[nodiscard]] int leaf(const std::string& op, const std::string& name,
                         Loc loc = Loc::current()) const;
};

enum class GraphStage {
  // As the calls of ops have made it; of a step with the gradients and the optimizer behind.
  kTraced,
  // As it is computed: simplified, nothing in it twice and nothing that no output needs; before it
  // is cut up for a device and operations become launches.
  kSimplified,
};

}  // namespace tensorgrad
