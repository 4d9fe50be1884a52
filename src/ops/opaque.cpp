// SPDX-License-Identifier: MIT
#include "ops/opaque.h"

#include <vector>

#include "ir/op_def.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

std::shared_ptr<const OpaqueKernel> opaque_kernel(const Graph& graph, const Node& node) {
  std::vector<Type> types;
  for (const ValueId input : node.inputs) types.push_back(graph[input].type);
  return node.op->opaque(types, node.attrs);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
