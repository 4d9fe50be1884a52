// SPDX-License-Identifier: MIT
// Walks the forward nodes backwards; every node's rule gives the gradients of its inputs, which are
// added up in the order they arrive.
#include "passes/autodiff.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/visits.h"
#include "ops/pointwise.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

void check_loss(const Graph& graph, ValueId loss) {
  const Node& node = graph[loss];
  if (!node.type.shape.empty()) {
    throw ShapeError("gradient: the loss must be a scalar, got " + to_string(node.type.shape) +
                         "; reduce it with mean() or sum()",
                     node.location);
  }
  if (node.type.dtype != DType::kF32) {
    throw DtypeError("gradient: the loss must be f32, got " + to_string(node.type), node.location);
  }
}

std::string grad_origin(const Node& node) {
  const std::string& of = node.origin.empty() ? node.op->name : node.origin;
  return of.ends_with(".grad") ? of : of + ".grad";
}

// Copies of the nodes that make `target` from the keys of `from`, with the values of `from` in
// their place; nodes that do not depend on a key are used as they are. The copies have the origin
// `origin`, if one is given, and are added to `from`. Gives target's copy.
ValueId copied(Graph& graph, ValueId target, std::map<ValueId, ValueId>& from,
               const std::string& origin = "") {
  const ValueId first = from.begin()->first;
  std::set<ValueId> needed;  // none that comes before `first` depends on a key
  std::vector<ValueId> open{target};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    visit();
    if (id <= first || from.contains(id) || !needed.insert(id).second) continue;
    open.insert(open.end(), graph[id].inputs.begin(), graph[id].inputs.end());
  }
  for (const ValueId id : needed) {
    Node node = graph[id];
    bool depends = false;
    for (ValueId& input : node.inputs) {
      const auto at = from.find(input);
      if (at == from.end()) continue;
      depends = true;
      input = at->second;
    }
    if (!depends) continue;
    if (!origin.empty()) node.origin = origin;
    from[id] = graph.append(std::move(node));
  }
  const auto made = from.find(target);
  return made == from.end() ? target : made->second;
}

// An attribute of the barriers behind which a checkpoint's region is computed again.
constexpr const char* kAgain = "again";

// Where gradients are differentiated again, both runs of a region would be differentiated, each by
// itself. So the second is given up: what reads a copy reads the original, and the walk makes a
// copy for all of them when it comes by.
void give_up_second_runs(Graph& graph, ValueId last) {
  std::vector<bool> needed(graph.nodes.size(), false);
  needed[static_cast<size_t>(last)] = true;
  bool any = false;
  for (ValueId id = last; id >= 0; --id) {
    if (!needed[static_cast<size_t>(id)]) continue;
    any |= graph[id].attrs.has(kAgain);
    for (const ValueId input : graph[id].inputs) needed[static_cast<size_t>(input)] = true;
  }
  if (!any) return;
  std::map<std::string, ValueId> first;  // node of each text
  std::vector<ValueId> same(graph.nodes.size());
  for (ValueId id = 0; id < graph.size(); ++id) {
    Node& node = graph[id];
    bool copy = false;
    for (ValueId& input : node.inputs) {
      copy |= same[static_cast<size_t>(input)] != input;
      input = same[static_cast<size_t>(input)];
    }
    const auto at = first.try_emplace(print(node), id).first;
    same[static_cast<size_t>(id)] = node.attrs.has(kAgain) ? node.inputs[0]
                                    : copy                 ? at->second
                                                           : id;
  }
}

// The walk: gradients of values are added up as they arrive, from the last node to the first.
class Backward {
 public:
  // Which nodes lie between some of `wrt` and `last`: only their gradients are wanted. None of them
  // comes before `first`.
  Backward(Graph& graph, std::span<const ValueId> wrt, ValueId first, ValueId last)
      : graph_(graph),
        wrt_(wrt.begin(), wrt.end()),
        first_(first),
        wanted_(static_cast<size_t>(last - first) + 1, false),
        grads_(wanted_.size(), kNoValue),
        halves_(wanted_.size(), kNoValue) {
    visit(last - first);
    for (const ValueId id : wrt) {
      if (id <= last) wanted_[at(id)] = true;
    }
    for (ValueId id = first; id <= last; ++id) {
      for (const ValueId input : graph[id].inputs) {
        if (wanted(input)) wanted_[at(id)] = true;
      }
      const Node& node = graph[id];
      const bool rounds = node.op == &ops::cast && node.type.dtype == DType::kF16 &&
                          node.inputs[0] >= first &&
                          graph[node.inputs[0]].op->kind == OpKind::kPointwise;
      if (rounds) halves_[at(node.inputs[0])] = id;
    }
  }

  void run(ValueId last, ValueId dy) {
    grads_[at(last)] = dy;
    for (ValueId id = last; id >= first_; --id) {
      if (gradient(id) != kNoValue && wanted(id)) differentiate(id);
    }
  }

  // kNoValue where nothing arrived.
  [[nodiscard]] ValueId gradient(ValueId id) const {
    return id >= first_ && at(id) < grads_.size() ? grads_[at(id)] : kNoValue;
  }

 private:
  [[nodiscard]] std::size_t at(ValueId id) const { return static_cast<std::size_t>(id - first_); }
  [[nodiscard]] bool wanted(ValueId id) const { return id >= first_ && wanted_[at(id)]; }

  void differentiate(ValueId id) {
    const Node node = graph_[id];
    Builder builder{graph_, node.location, grad_origin(node)};
    GradContext ctx(builder, graph_, id, gradient(id), halves_[at(id)]);
    if (node.op == &ops::checkpoint) return recompute(ctx);
    const bool written = node.op->grad == nullptr && node.op->expand != nullptr;
    if (written && node.type.dtype == DType::kF32) return by_expansion(ctx);
    const bool custom = node.op == &ops::custom_gradient;
    if (!custom && node.op->grad == nullptr) return;
    const std::vector<ValueId> gradients = custom ? custom_gradients(ctx) : node.op->grad(ctx);
    CHECK(gradients.size() == node.inputs.size(), node.op->name);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i] == kNoValue || !wanted(node.inputs[i])) continue;
      CHECK(graph_[gradients[i]].type == graph_[node.inputs[i]].type,
            std::string(node.op->name) + ": its gradient has type " +
                to_string(graph_[gradients[i]].type));
      add(builder, node.inputs[i], gradients[i]);
    }
  }

  void add(Builder& builder, ValueId to, ValueId gradient) {
    ValueId& total = grads_[at(to)];
    total = total == kNoValue ? gradient : (Ex{&builder, total} + Ex{&builder, gradient}).id;
  }

  // The node is written with other ops, of copies of its inputs: what these are made of themselves
  // is not a part of it.
  void by_expansion(GradContext& ctx) {
    Node node = ctx.self();
    const std::vector<ValueId> inputs = node.inputs;
    std::vector<ValueId> again;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      node.inputs[i] = op::apply(ctx.builder, ops::barrier, {ctx.in(i)}).id;
      if (wanted(inputs[i])) again.push_back(node.inputs[i]);
    }
    ExpandContext expanding(ctx.builder, node);
    const ValueId y = node.op->expand(expanding);
    const ValueId first = *std::min_element(node.inputs.begin(), node.inputs.end());
    Backward inner(graph_, again, first, y);
    inner.run(y, ctx.dy().id);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueId gradient = inner.gradient(node.inputs[i]);
      if (gradient != kNoValue && wanted(inputs[i])) add(ctx.builder, inputs[i], gradient);
    }
  }

  // checkpoint(y, what y's region reads ...): the region is computed again, behind barriers, and
  // the gradients of that are taken. They are added to what has arrived already in the order in
  // which they would have been without the checkpoint, so that no bit changes.
  void recompute(GradContext& ctx) {
    const std::vector<ValueId> inputs = ctx.self().inputs;
    if (asks_inside(inputs)) return add(ctx.builder, inputs[0], ctx.dy().id);
    std::map<ValueId, ValueId> from, given;
    std::vector<ValueId> again;
    const ValueId first = graph_.size();
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      from[inputs[i]] =
          op::apply(ctx.builder, ops::barrier, {ctx.in(i)}, {{kAgain, std::int64_t{1}}}).id;
      if (wanted(inputs[i])) again.push_back(from[inputs[i]]);
    }
    given = from;
    const ValueId y = copied(graph_, inputs[0], from);
    if (y == inputs[0]) return;  // it depends on nothing that the region reads
    Backward inner(graph_, again, first, y);
    for (const auto& [original, copy] : from)
      if (inner.at(copy) < inner.grads_.size()) inner.grads_[inner.at(copy)] = gradient(original);
    inner.run(y, ctx.dy().id);
    // What was made in the region has handed its gradient on.
    for (const auto& [original, copy] : from) {
      if (original >= first_)
        grads_[at(original)] = given.contains(original) ? inner.gradient(copy) : kNoValue;
    }
  }

  // Is a gradient asked for with respect to a value made in a checkpoint's region? Then it is the
  // first run that is differentiated. (Nodes between the last value read and y count as made
  // there.)
  [[nodiscard]] bool asks_inside(const std::vector<ValueId>& inputs) const {
    ValueId last_read = -1;
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      if (graph_[inputs[i]].op->kind != OpKind::kLeaf) last_read = std::max(last_read, inputs[i]);
    }
    return std::any_of(wrt_.begin(), wrt_.end(), [&](ValueId id) {
      return id > last_read && id <= inputs[0] && graph_[id].op->kind != OpKind::kLeaf;
    });
  }

  // custom_gradient(y, n inputs, stand-ins for dy and y, n gradients written with these).
  static std::vector<ValueId> custom_gradients(GradContext& ctx) {
    const std::vector<ValueId> inputs = ctx.self().inputs;
    const std::size_t n = (inputs.size() - 3) / 2;
    const std::map<ValueId, ValueId> given = {{inputs[n + 1], ctx.dy().id},
                                              {inputs[n + 2], ctx.node}};
    std::vector<ValueId> gradients(inputs.size(), kNoValue);
    for (std::size_t i = 0; i < n; ++i) {
      std::map<ValueId, ValueId> from = given;
      gradients[1 + i] = copied(ctx.builder.graph, inputs[n + 3 + i], from, ctx.builder.origin);
    }
    return gradients;
  }

  Graph& graph_;
  std::vector<ValueId> wrt_;
  ValueId first_;
  std::vector<bool> wanted_;
  std::vector<ValueId> grads_;
  std::vector<ValueId> halves_;  // what each pointwise value is rounded to f16 as
};

}  // namespace

std::vector<ValueId> autodiff(Graph& graph, ValueId loss, std::span<const ValueId> wrt,
                              ValueId scale) {
  check_loss(graph, loss);
  give_up_second_runs(graph, loss);
  Backward backward(graph, wrt, 0, loss);
  Builder seed{graph, graph[loss].location, "loss.grad"};
  backward.run(loss, scale != kNoValue ? scale : op::constant(seed, 1.0, DType::kF32).id);
  std::vector<ValueId> result;
  for (const ValueId id : wrt) {
    ValueId gradient = backward.gradient(id);
    if (gradient == kNoValue) {
      Builder zero{graph, graph[id].location, kZeroGradient};
      gradient = op::full(zero, 0.0, Type(graph[id].type)).id;
    }
    result.push_back(gradient);
  }
  return result;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
