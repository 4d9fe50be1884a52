// SPDX-License-Identifier: MIT
// Read-only view of a traced graph, for inspection by programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/error.h"
#include "tensorgrad/tensor.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Node of a graph: an op with its result, or a leaf. Leaves are inputs, parameters, states,
/// dataset entries and run-time scalars.
struct GraphNode {
  std::string op;           ///< "matmul", "sum", "input", "parameter" ...
  std::vector<int> inputs;  ///< Indices of the operand nodes, in order.
  DType dtype = f32;        ///< Element type of the result.
  Shape shape;              ///< Shape of the result.
  std::string name;         ///< Name of a leaf; empty for ops.

  /// Other arguments of the op, as in IR text: {"axes", "[1]"}.
  std::vector<std::pair<std::string, std::string>> attributes;

  std::string origin;       ///< Composite op it belongs to, if any: "gelu", "gelu.grad" ...
  SourceLocation location;  ///< Source line of the call.
};

/// Snapshot of a graph. Nodes refer to each other by index.
/// ```cpp
/// for (const tg::GraphNode& node : function.graph().nodes)
///   std::cout << node.op << to_string(node.shape) << "  at " << to_string(node.location) << '\n';
/// ```
struct GraphView {
  std::vector<GraphNode> nodes;  ///< All nodes; operands come before their users.
  std::vector<std::pair<std::string, int>> outputs;  ///< Name and node of each output.
  std::vector<std::pair<int, int>> updates;  ///< Leaf, and node whose value it has after the run.
  std::string text;                          ///< IR text, as the functions of debug.h read it.

  /// Returns the users of each node, in ascending order. A node that reads an operand twice is
  /// listed twice.
  [[nodiscard]] std::vector<std::vector<int>> users() const;

  /// Returns the index of the leaf with the given op ("input", "parameter" ...) and name. Throws
  /// UserError listing the known names if there is none.
  [[nodiscard]] int leaf(const std::string& op, const std::string& name,
                         Loc loc = Loc::current()) const;
};

/// Compilation stage of a graph to inspect.
enum class GraphStage {
  /// The graph as traced. For a training step, gradients and optimizer are appended.
  kTraced,

  /// After simplification, common subexpression elimination and dead code elimination, but before
  /// splitting for the device and fusion.
  kSimplified,
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
