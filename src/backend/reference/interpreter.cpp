// SPDX-License-Identifier: MIT
// Evaluates one node at a time with OpDef::eval.
#include "backend/reference/interpreter.h"

#include "base/check.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

std::vector<RefTensor> interpret(const Graph& graph, const InterpretOptions& options) {
  std::vector<RefTensor> values(graph.nodes.size());
  for (ValueId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    RefTensor& out = values[static_cast<size_t>(id)];
    out.type = node.type;
    if (node.op->eval == nullptr) {
      out.data = options.leaf(node);
    } else {
      std::vector<const RefTensor*> inputs;
      for (const ValueId input : node.inputs) inputs.push_back(&values[static_cast<size_t>(input)]);
      node.op->eval({node, inputs}, out);
    }
    CHECK(static_cast<std::int64_t>(out.data.size()) == numel(node.type.shape),
          std::string(node.op->name) + " gave " + std::to_string(out.data.size()) + " elements");
    if (options.round_to_float && node.type.dtype == DType::kF32) {
      for (double& value : out.data) value = static_cast<float>(value);
    }
    if (options.visit && !options.visit(id, out)) return {};
  }
  return values;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
