// SPDX-License-Identifier: MIT
#include "api/training_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/numbers.h"
#include "ops/registry.h"
#include "ops/structured.h"

namespace tensorgrad {
namespace {

// The optimizer's view of the parameter arena; its states are arenas of the same layout.
class ArenaUpdate final : public optim::Update {
 public:
  ArenaUpdate(Trace& trace, std::int64_t elements, const std::vector<ValueId>& grads,
              const ParameterTable& table)
      : trace_(trace), elements_(elements), builder_{trace.graph, {}, "optimizer"} {
    param_leaf_ = op::apply(builder_, ops::arena, {}, flat_attrs("params"));
    std::vector<Ex> parts;
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 0; i < grads.size(); ++i) {
      parts.push_back({&builder_, grads[i]});
      offsets.push_back(table.entries()[i].offset);
    }
    const Ex packed =
        op::apply(builder_, ops::pack, parts, {{"offsets", offsets}, {"size", elements}});
    param = trace.tensor(param_leaf_);
    grad = trace.tensor(packed);
    lr = trace.tensor(trace.scalar(kLrScalar, DType::kF32, 0, {}));
    step = trace.tensor(trace.scalar(kCountScalar, DType::kF32, 0, {}));
  }

  Tensor state(const std::string& name, double initial) override {
    const std::string full = "optim." + name;
    ValueId leaf = trace_.graph.find_leaf(ops::state, full);
    if (leaf == kNoValue) {
      Attrs attrs = flat_attrs(full);
      attrs.set("init", initial);
      leaf = op::apply(builder_, ops::state, {}, std::move(attrs)).id;
    }
    return trace_.tensor(leaf);
  }

  void set_state(const std::string& name, Tensor value) override {
    const ValueId leaf = trace_.graph.find_leaf(ops::state, "optim." + name);
    if (leaf == kNoValue)
      throw UserError("optimizer: set_state('" + name + "') before state('" + name + "')");
    trace_.graph.updates.push_back({leaf, trace_.value(value, "set_state", {})});
  }

  void set_param(Tensor value) override {
    trace_.graph.updates.push_back({param_leaf_.id, trace_.value(value, "set_param", {})});
    param_set_ = true;
  }

  [[nodiscard]] bool param_set() const { return param_set_; }

 private:
  [[nodiscard]] Attrs flat_attrs(const std::string& name) const {
    return {{"name", name},
            {"shape", Shape{elements_}},
            {"dtype", static_cast<std::int64_t>(DType::kF32)}};
  }

  Trace& trace_;
  std::int64_t elements_;
  Builder builder_;
  Ex param_leaf_;
  bool param_set_ = false;
};

// Pascanu, Mikolov and Bengio 2013; PyTorch's
// clip_grad_norm_: g * min(1, max_norm / (norm + 1e-6)).
Tensor clipped(const Tensor& grad, double max_norm) {
  const Composite composite("clip_grad_norm", {});
  const Tensor norm = sqrt(sum(square(grad)));
  return grad * minimum(scalar(kClipScalar, max_norm) / (norm + 1e-6), 1.0);
}

}  // namespace

void check_clip_norm(double max_norm) {
  if (max_norm > 0) return;
  throw UserError("clip_grad_norm: more than 0 expected, got " + number_text(max_norm));
}

CompileRequest training_request(TracedFunction& traced, const ParameterTable& table,
                                const CompileOptions& options, const Site& site) {
  if (!options.optimizer.present()) throw UserError("compile: an optimizer is needed", site);
  if (table.entries().empty()) throw UserError("compile: the model has no parameters", site);
  if (options.clip_grad_norm != 0) check_clip_norm(options.clip_grad_norm);
  const double rate = options.optimizer.lr().at(0);
  if (!(rate >= 0) || std::isinf(rate)) {
    throw UserError("compile: a learning rate of at least 0 expected, got " + number_text(rate),
                    site);
  }
  CompileRequest request;
  request.name = "train";
  request.plan.params_elements = table.elements();
  request.plan.memory_budget = options.memory_budget;
  request.plan.rings = {{"loss", kLossRing}};
  request.loss = traced.trace.graph.outputs.at(0).value;
  for (const ParameterEntry& entry : table.entries()) {
    request.wrt.push_back(traced.trace.parameters.at(entry.parameter));
  }
  // The optimizer's ops go to the trace's graph; compile_graph() hands over its own copy of it.
  request.extend = [&traced, &table, &options, site](Graph& graph,
                                                     const std::vector<ValueId>& grads) {
    if (std::all_of(grads.begin(), grads.end(),
                    [&](ValueId id) { return graph[id].origin == kZeroGradient; })) {
      throw UserError("compile: the loss has no gradient with respect to any parameter",
                      graph[graph.outputs.at(0).value].site);
    }
    Trace& trace = traced.trace;
    std::swap(trace.graph, graph);
    {
      const TraceScope scope(trace);
      ArenaUpdate update(trace, table.elements(), grads, table);
      if (options.clip_grad_norm > 0) update.grad = clipped(update.grad, options.clip_grad_norm);
      const Composite composite("optimizer", site);
      options.optimizer.apply(update);
      if (!update.param_set()) throw UserError("optimizer: it never calls set_param()", site);
    }
    std::swap(trace.graph, graph);
  };
  request.graph = traced.trace.graph;
  return request;
}

}  // namespace tensorgrad
