// SPDX-License-Identifier: MIT
// A graph: nodes in topological order, named outputs, and updates of leaves that take effect at the
// end of a run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/node.h"
#include "ir/op_def.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct GraphOutput {
  std::string name;
  ValueId value = kNoValue;
};

// After a run, the leaf (a state, an arena or a parameter) holds `value`.
struct GraphUpdate {
  ValueId leaf = kNoValue;
  ValueId value = kNoValue;
};

class Graph {
 public:
  std::vector<Node> nodes;
  std::vector<GraphOutput> outputs;
  std::vector<GraphUpdate> updates;

  [[nodiscard]] const Node& operator[](ValueId id) const { return nodes[static_cast<size_t>(id)]; }
  [[nodiscard]] Node& operator[](ValueId id) { return nodes[static_cast<size_t>(id)]; }
  [[nodiscard]] ValueId size() const { return static_cast<ValueId>(nodes.size()); }

  // Appends a node after checking its arity, and its shape and dtype by the op's own rule. Errors
  // contain `location` and `name`, or the name of the op if that is empty.
  ValueId add(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs = {},
              SourceLocation location = {}, std::string origin = {}, std::string_view name = {});
  // Appends a node without checks.
  ValueId append(Node node);

  // Returns the leaf of this op and name, or kNoValue.
  [[nodiscard]] ValueId find_leaf(const OpDef& op, const std::string& name) const;
};

// Returns, for each value, the ids of the nodes that read it, in order and once per read.
std::vector<std::vector<ValueId>> users_of(const Graph& graph);

// Rebuilds the graph node by node. `rewrite` gets the new graph and the old node with its inputs
// remapped. It returns the new value, or kNoValue to copy the node. Outputs and updates are
// remapped.
Graph rewrite_graph(const Graph& graph,
                    const std::function<ValueId(Graph& out, const Node& node)>& rewrite);

// Throws InternalError if an invariant is violated: order, arity, types by the ops' own rules,
// outputs and updates in range, types of updates equal to those of their leaves.
void verify(const Graph& graph);

// Converts a graph to and from IR text, which contains everything except groups. parse() throws
// IoError with the line.
std::string print(const Graph& graph);
std::string print(const Node& node);  // without "%3 = "
std::string attr_text(const AttrValue& value);
Graph parse(std::string_view text, const std::string& name,
            const std::function<const OpDef*(std::string_view)>& find_op);

// Throws ShapeError, starting with `name`, if no tensor can have this shape.
void check_shape(std::string_view name, const Shape& shape, const SourceLocation& location);

// Returns the FNV-1a hash of everything except locations, origins and groups. Equal graphs have
// equal hashes in every process.
std::uint64_t hash(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
