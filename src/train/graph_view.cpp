// SPDX-License-Identifier: MIT
// Converts graphs to the public GraphView.
#include "train/graph_view.h"

#include "trace/source_location.h"
#include "train/program_session.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

GraphView make_graph_view(const Graph& graph) {
  GraphView view;
  view.nodes.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    GraphNode& shown = view.nodes.emplace_back();
    shown.op = node.op->name;
    shown.inputs.assign(node.inputs.begin(), node.inputs.end());
    shown.dtype = node.type.dtype;
    shown.shape = node.type.shape;
    const bool leaf = node.op->kind == OpKind::kLeaf;
    if (leaf && node.attrs.has("name")) shown.name = node.attrs.text("name");
    for (const auto& [key, value] : node.attrs.items())
      shown.attributes.emplace_back(key, attr_text(value));
    shown.origin = node.origin;
    shown.location = node.location;
  }
  for (const GraphOutput& output : graph.outputs)
    view.outputs.emplace_back(output.name, output.value);
  for (const GraphUpdate& update : graph.updates)
    view.updates.emplace_back(update.leaf, update.value);
  view.text = print(graph);
  return view;
}

std::vector<std::vector<int>> GraphView::users() const {
  std::vector<std::vector<int>> readers(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const int input : nodes[i].inputs)
      readers[static_cast<std::size_t>(input)].push_back(static_cast<int>(i));
  }
  return readers;
}

int GraphView::leaf(const std::string& op, const std::string& name, Loc loc) const {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].op != op || nodes[i].name.empty()) continue;
    if (nodes[i].name == name) return static_cast<int>(i);
    known.push_back(nodes[i].name);
  }
  with_source_location(loc, [&] { check_known("unknown " + op, name, known); });
  return kNoValue;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
