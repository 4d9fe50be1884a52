// SPDX-License-Identifier: MIT
#include "compile/debug/interpret.h"

#include <cmath>

#include "backend/reference/interpreter.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

NonFinite first_non_finite(const Graph& graph,
                           const std::function<std::vector<double>(const Node& leaf)>& leaf) {
  NonFinite found;
  InterpretOptions options;
  options.leaf = leaf;
  options.round_to_float = true;
  options.visit = [&](ValueId id, const RefTensor& value) {
    const Node& node = graph[id];
    // A literal infinity (a mask) is intended, an infinity computed by an op is not.
    if (node.type.dtype != DType::kF32 || node.op->kind == OpKind::kView || node.attrs.has("value"))
      return true;
    for (std::size_t i = 0; i < value.data.size(); ++i) {
      if (std::isfinite(value.data[i])) continue;
      const std::string origin = node.origin.empty() ? "" : " in " + node.origin;
      const std::string name =
          node.attrs.has("name") ? " '" + node.attrs.text("name") + "'" : std::string();
      found = {node.op->name + name + origin, to_string(node.type), static_cast<std::int64_t>(i),
               value.data[i],
               node.op == &ops::input ? SourceLocation() : node.location};  // inputs: the call's
      return false;
    }
    return true;
  };
  interpret(graph, options);
  return found;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
