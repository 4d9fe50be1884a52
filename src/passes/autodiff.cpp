// SPDX-License-Identifier: MIT
// Visits the forward nodes in reverse order. The rule of each node returns the gradients of its
// inputs, which are accumulated in order of arrival.
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

// Copies the nodes between the keys of `from` and `target`, replaces the keys by their values, and
// adds the copies to `from`. Nodes that do not depend on a key are shared, not copied. If `origin`
// is not empty, the copies get it. Returns the copy of `target`, or `target` itself if it depends
// on no key.
ValueId copied(Graph& graph, ValueId target, std::map<ValueId, ValueId>& from,
               const std::string& origin = "") {
  const ValueId first = from.begin()->first;
  std::set<ValueId> needed;  // nodes before `first` depend on no key
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

// Attribute of the barriers that separate the recomputed region of a checkpoint.
constexpr const char* kAgain = "again";

// Removes the recomputed copies of checkpoint regions before a second differentiation. Otherwise
// both the region and its copy would be differentiated, each separately. Redirects the readers of a
// copy to the original; recompute() makes one copy for all of them.
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
  std::map<std::string, ValueId> first;  // the first node with a given text
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

// The reverse pass. Gradients of values are accumulated from the last node to the first.
class Backward {
 public:
  // Marks the nodes between `wrt` and `last`; only they get gradients. All of them must be at or
  // after `first`.
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

  // Returns kNoValue if no gradient has arrived.
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
    if (written && register_dtype(node.type.dtype) == DType::kF32) return by_expansion(ctx);
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
    total = total == kNoValue ? gradient : (Expr{&builder, total} + Expr{&builder, gradient}).id;
  }

  // Differentiates the decomposition of the node. The decomposition reads its inputs through
  // barriers, so that differentiation stops at the inputs.
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

  // Differentiates checkpoint(y, values read by the region of y ...): recomputes the region behind
  // barriers and differentiates the copy. Gradients that have already arrived are accumulated in
  // the same order as without the checkpoint, so the result is bitwise equal.
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
    if (y == inputs[0]) return;  // y depends on nothing that the region reads
    Backward inner(graph_, again, first, y);
    for (const auto& [original, copy] : from)
      if (inner.at(copy) < inner.grads_.size()) inner.grads_[inner.at(copy)] = gradient(original);
    inner.run(y, ctx.dy().id);
    // Values computed in the region have passed their gradients on.
    for (const auto& [original, copy] : from) {
      if (original >= first_)
        grads_[at(original)] = given.contains(original) ? inner.gradient(copy) : kNoValue;
    }
  }

  // True if a gradient is requested with respect to a value computed in the region of a checkpoint.
  // In that case the original region is differentiated, not a copy. All nodes between the last
  // value read and y count as part of the region.
  [[nodiscard]] bool asks_inside(const std::vector<ValueId>& inputs) const {
    ValueId last_read = -1;
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      if (graph_[inputs[i]].op->kind != OpKind::kLeaf) last_read = std::max(last_read, inputs[i]);
    }
    return std::any_of(wrt_.begin(), wrt_.end(), [&](ValueId id) {
      return id > last_read && id <= inputs[0] && graph_[id].op->kind != OpKind::kLeaf;
    });
  }

  // Returns the gradients of custom_gradient(y, n inputs, placeholders of dy and y, n gradients
  // that are functions of the placeholders).
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
  std::vector<ValueId> halves_;  // the f16 rounding of each pointwise value, or kNoValue
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
