// SPDX-License-Identifier: MIT
// Adds copies of values that are not stored as they are read.
#include "passes/fuse/materialize.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "ir/sources.h"
#include "ops/expr.h"
#include "ops/pointwise.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

bool is_stored_leaf(const Node& node) {
  return node.op->kind == OpKind::kLeaf && node.op != &ops::constant && node.op != &ops::scalar;
}

// Makes the operand of a product readable through one window, because its elements are read more
// than once. If the views of the operand do not compose into one window (padding below overlapping
// windows), copies the value of the view at which composition stops.
class OneWindow {
 public:
  ValueId operator()(Graph& out, ValueId id) {
    std::vector<ValueId> chain;  // views, from the operand toward its source
    IndexMap map = IndexMap::identity(out[id].type.shape);
    for (ValueId at = id; out[at].op->kind == OpKind::kView; at = out[at].inputs[0]) {
      const Node& node = out[at];
      map = compose(map, node.op->view(out[node.inputs[0]].type, node.attrs));
      if (map.views.size() == 1) {
        chain.push_back(at);
        continue;
      }
      if (numel(node.type.shape) > numel(out[id].type.shape)) return id;
      return rebuilt(out, chain, add_copy(out, at));
    }
    return id;
  }

 private:
  ValueId add_copy(Graph& out, ValueId id) {
    const auto [at, fresh] = copies_.try_emplace(id, kNoValue);
    if (fresh) {
      Builder builder{out, out[id].location, out[id].origin};
      at->second = op::detach(Expr{&builder, id}).id;
    }
    return at->second;
  }

  static ValueId rebuilt(Graph& out, const std::vector<ValueId>& chain, ValueId from) {
    for (std::size_t i = chain.size(); i-- > 0;) {
      Node node = out[chain[i]];
      node.inputs = {from};
      from = out.append(std::move(node));
    }
    return from;
  }

  std::map<ValueId, ValueId> copies_;
};

}  // namespace

Graph materialize(const Graph& graph) {
  std::set<ValueId> placed;  // values that are already stored as an output, update or pack input
  const auto in_memory = [&](Graph& out, ValueId id, bool own_place) {
    const Source source = through_views(out, id);
    const Node& node = out[source.value];
    const bool computed = is_computed(node);
    const bool free =
        own_place ? computed && !placed.contains(source.value) : computed || is_stored_leaf(node);
    const bool whole =
        numel(out[id].type.shape) == numel(node.type.shape);  // not just the leading elements
    const bool good = source.map.is_identity() && whole && free;
    if (good) {
      if (own_place) placed.insert(source.value);
      return id;
    }
    Builder builder{out, out[id].location, out[id].origin.empty() ? "copy" : out[id].origin};
    const ValueId copy = op::detach(Expr{&builder, id}).id;
    if (own_place) placed.insert(copy);
    return copy;
  };
  OneWindow one_window;
  Graph out = rewrite_graph(graph, [&](Graph& to, const Node& node) {
    if (node.op->kind == OpKind::kContraction) {
      Node product = node;
      for (ValueId& input : product.inputs) input = one_window(to, input);
      return to.append(std::move(product));
    }
    const bool pack = node.op->kind == OpKind::kPack;
    if (!pack && node.op->kind != OpKind::kGather) return kNoValue;
    Node copy = node;
    for (std::size_t i = 0; i < (pack ? copy.inputs.size() : 1); ++i) {
      copy.inputs[i] = in_memory(to, copy.inputs[i], pack);
    }
    return to.append(std::move(copy));
  });
  for (GraphUpdate& update : out.updates) update.value = in_memory(out, update.value, true);
  std::vector<bool> read;  // by a node
  ValueId counted = 0;
  for (GraphOutput& output : out.outputs) {
    read.resize(out.nodes.size(), false);
    for (; counted < out.size(); ++counted) {
      for (const ValueId input : out[counted].inputs) read[static_cast<size_t>(input)] = true;
    }
    // A scalar output may be written to a ring buffer, where nodes that read it would not find it.
    const ValueId value = through_views(out, output.value).value;
    if (out[value].type.shape.empty() && read[static_cast<size_t>(value)]) placed.insert(value);
    output.value = in_memory(out, output.value, true);
  }
  return out;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
