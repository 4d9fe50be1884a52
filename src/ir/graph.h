// SPDX-License-Identifier: MIT
// A graph: nodes in topological order (inputs before users), named outputs, and updates of leaves
// that take effect when all else is done.
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

// After a run, the leaf (a state or an arena) holds `value`.
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

  // Appends a node after checking it: arity, shape and dtype by the op's own rule. Errors carry the
  // `name` (the op's own where it is empty) and `site`.
  ValueId add(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs = {},
              SourceLocation location = {}, std::string origin = {}, std::string_view name = {});
  // Appends a node as it is, without checks.
  ValueId append(Node node);

  // The leaf of this op and name, or kNoValue.
  [[nodiscard]] ValueId find_leaf(const OpDef& op, const std::string& name) const;
};

// users[v] = ids of the nodes that read v, in order, once per reading.
std::vector<std::vector<ValueId>> users_of(const Graph& graph);

// Builds the graph anew, node by node, and remaps inputs, outputs and updates. `rewrite` gets the
// new graph, the old node (with its inputs already remapped) and returns the new value for it, or
// kNoValue to copy the node.
Graph rewrite_graph(const Graph& graph,
                    const std::function<ValueId(Graph& out, const Node& node)>& rewrite);

// Throws InternalError where an invariant does not hold: order, arity, types by the ops' own rules,
// outputs and updates in range, update types equal to their leaves'.
void verify(const Graph& graph);

// IR text, and back. The text holds everything but the group; parse throws IoError with the line.
std::string print(const Graph& graph);
std::string print(const Node& node);  // without "%3 = "
std::string attr_text(const AttrValue& value);
Graph parse(std::string_view text, const std::string& name,
            const std::function<const OpDef*(std::string_view)>& find_op);

// Throws ShapeError, beginning with `name`, where no tensor can have this shape.
void check_shape(std::string_view name, const Shape& shape, const SourceLocation& location);

// FNV-1a over everything but locations and origins: equal graphs have equal hashes, in every
// process.
std::uint64_t hash(const Graph& graph);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
