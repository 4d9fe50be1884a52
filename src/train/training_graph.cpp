// SPDX-License-Identifier: MIT
#include "train/training_graph.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/numbers.h"
#include "ops/registry.h"
#include "ops/structured.h"
#include "tensorgrad/distributed/communicator.h"
#include "tensorgrad/ops/pointwise.h"
#include "tensorgrad/ops/reduction.h"
#include "tensorgrad/ops/state.h"
#include "tensorgrad/ops/views.h"
#include "train/loss_scale.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

int rank_count(const CompileOptions& options) {
  return options.distributed == nullptr ? 1 : options.distributed->size();
}

// Returns the sum over all ranks of `part`, one rank's share of the gradients or of a number. What
// reads it runs after the exchange.
Tensor exchanged(Trace& trace, const Tensor& part) {
  OpContext ctx("exchange", {});
  trace.graph.outputs.push_back({kExchange, part.id()});
  return ctx.out(op::apply(ctx.builder, ops::barrier, {ctx.in(part)}));
}

// Returns the sum of the elements on all ranks. Only a tensor that is not a scalar is read from the
// output that the host replaces.
Tensor sum_over_ranks(Trace& trace, const Tensor& part) {
  return reshape(exchanged(trace, sum(reshape(part, {1, part.size(0)}), 1)), {});
}

std::string optimizer_name(const Optimizer& optimizer) {
  return optimizer.name().empty() ? "this one" : optimizer.name();
}

// Applies an elementwise function to the gradients of the update, and to those of all shards.
// Applied before the shard is taken out, it would be a launch of its own.
template <class Function>
void change_both(ArenaUpdate& update, Tensor& whole, const Function& function) {
  const bool same = whole.id() == update.grad.id();
  update.grad = function(update.grad);
  whole = same ? update.grad : function(whole);
}

// Accumulates gradients: steps that end in an update see the mean, other steps add to the sum.
// Returns whether this step ends in an update. Sets `whole` to the mean gradients of all shards.
Tensor accumulate(ArenaUpdate& update, Trace& trace, const CompileOptions& options, int ranks,
                  Tensor& whole) {
  const Composite composite("accumulate", {});
  const Tensor due = update.host_scalar(kDueScalar) != 0.0;
  Tensor sum = update.state(kSumState, 0) + update.grad;
  if (ranks > 1) sum = exchanged(trace, sum);
  update.set_state(kSumState, where(due, 0.0, sum));
  update.grad = whole = sum;
  if (!options.normalize_grads.present()) update.keep_shard();
  change_both(update, whole,
              [&](const Tensor& grad) { return grad / (options.accumulate * ranks); });
  update.change_only_if(due);
  return due;
}

// Normalizes the gradient of each parameter separately: g / (norm + 1e-8).
void normalize(ArenaUpdate& update, const ParamFilter& filter) {
  const Composite composite("normalize_grads", {});
  std::vector<Tensor> parts(update.param_infos().size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [name, shape] = update.param_infos()[i];
    if (!filter(name, shape)) continue;
    const Tensor grad = update.param_view(update.grad, i);
    parts[i] = grad / (sqrt(sum(square(grad))) + 1e-8);
  }
  update.grad = where(update.mask(filter), update.flatten(parts), update.grad);
}

void clip_value(ArenaUpdate& update, Tensor& whole, double most) {
  const Composite composite("clip_grad_value", {});
  const Tensor limit = scalar(kClipValueScalar, most);
  change_both(update, whole,
              [&](const Tensor& grad) { return minimum(maximum(grad, -limit), limit); });
}

// Pascanu, Mikolov and Bengio 2013, as PyTorch's clip_grad_norm_:
//   g * min(1, max_norm / (norm + 1e-6))
void clip_norm(ArenaUpdate& update, const Tensor& norm, double max_norm) {
  const Composite composite("clip_grad_norm", {});
  update.grad = update.grad * minimum(scalar(kClipScalar, max_norm) / (norm + 1e-6), 1.0);
}

// Changes the gradients from those of the loss to those that the optimizer sees, of its shard.
void change_gradients(ArenaUpdate& update, Trace& trace, const CompileOptions& options,
                      LossScaler* scaler) {
  const Tensor scaled = update.grad;
  const bool scales = scaler != nullptr && scaler->scales();
  const int ranks = rank_count(options);
  const bool reduced = ranks > 1 && options.shard_parameters;  // by reduce_scatter
  if (scales) update.grad = scaled * scaler->unscale();
  std::optional<Tensor> due;
  Tensor whole;  // the gradients of all shards; if they are reduced, of this one
  if (options.accumulate > 1) {
    due = accumulate(update, trace, options, reduced ? 1 : ranks, whole);
  } else if (ranks > 1 && !reduced) {
    const Composite composite("exchange", {});
    update.grad = exchanged(trace, update.grad / ranks);
  }
  if (options.accumulate == 1 || options.normalize_grads.present()) {
    if (options.normalize_grads.present()) normalize(update, options.normalize_grads);
    whole = update.grad;
    update.keep_shard();
  }
  if (options.clip_grad_value != 0) clip_value(update, whole, options.clip_grad_value);
  if (options.clip_grad_norm == 0 && scaler == nullptr) return;
  const Composite composite("grad_norm", {});
  const Tensor norm = sqrt(reduced ? sum_over_ranks(trace, square(whole)) : sum(square(whole)));
  trace.graph.outputs.push_back({kGradNorm, norm.id()});
  if (scaler != nullptr) {
    scaler->follow(norm, due);
    update.only_if(scaler->number(ScaleNumber::kChanges) != 0.0);
    update.step = scaler->number(ScaleNumber::kTaken);
    const bool unchanged = scales && options.accumulate == 1 && ranks == 1 &&
                           !options.normalize_grads.present() && options.clip_grad_value == 0;
    if (unchanged) update.grad = scaled * scaler->number(ScaleNumber::kUnscale);
  }
  if (options.clip_grad_norm != 0) clip_norm(update, norm, options.clip_grad_norm);
}

// As torch.optim.swa_utils: starts with the first parameters, then
//   average += (1 - decay) * (param - average)
void average(ArenaUpdate& update, double decay) {
  const Composite composite("ema", {});
  const Tensor old = update.state(kEmaName, 0), param = *update.new_param();
  update.set_state(kEmaName, where(update.step == 1.0, param, old + (1 - decay) * (param - old)));
}

void check_options(const CompileOptions& options, const ParameterTable& table,
                   const ParameterRange& trained, const SourceLocation& location) {
  if (!options.optimizer.present()) throw UserError("compile: an optimizer is required", location);
  if (table.entries().empty()) throw UserError("compile: the model has no parameters", location);
  if (trained.entries.empty()) throw UserError("compile: every parameter is frozen", location);
  if (options.clip_grad_norm != 0) check_scalar(kClipScalar, options.clip_grad_norm);
  if (options.clip_grad_value != 0) check_scalar(kClipValueScalar, options.clip_grad_value);
  check_rate("compile", options.optimizer.lr());
  for (const ParamGroup& group : options.groups) {
    check_scalar(kLrFactorPrefix + group_name(group), group.lr_factor);
    check_scalar(kDecayScalar, group.weight_decay.value_or(0));
    if (group.lr) check_rate("group '" + group_name(group) + "'", *group.lr);
  }
  if (options.accumulate < 1) {
    throw UserError("compile: accumulate: expected at least one step, got " +
                    std::to_string(options.accumulate));
  }
  if (!(options.ema_decay >= 0 && options.ema_decay < 1)) {
    throw UserError("compile: ema_decay: expected at least 0 and less than 1, got " +
                    number_text(options.ema_decay));
  }
  if (options.distributed == nullptr && (options.shard_optimizer || options.shard_parameters)) {
    throw UserError(
        "compile: " +
            std::string(options.shard_parameters ? "shard_parameters" : "shard_optimizer") +
            ": expected distributed to be set, got null",
        location);
  }
  if (options.shard_parameters && options.normalize_grads.present()) {
    throw UserError(
        "compile: shard_parameters: not supported with normalize_grads, which needs whole "
        "gradients",
        location);
  }
  if (options.distributed != nullptr && options.detect_nan)
    throw UserError("compile: detect_nan: not supported with distributed", location);
  if (options.normalize_grads.present())
    table.check_filter("normalize_grads", options.normalize_grads);
}

// Throws UserError if an op of the optimizer, whose values begin with `first`, is not elementwise.
// It would see only the elements of a shard.
void check_elementwise(const Graph& graph, ValueId first, const Optimizer& optimizer,
                       const ParameterRange& trained) {
  for (ValueId id = first; id < graph.size(); ++id) {
    const OpDef* op = graph[id].op;
    if (op->kind == OpKind::kLeaf || op->kind == OpKind::kPointwise || op == &ops::reshape ||
        op == &ops::broadcast || op == &ops::barrier || op == &ops::checkpoint) {
      continue;
    }
    throw UserError("compile: " + std::string(shard_option(trained)) +
                        ": expected an elementwise optimizer, but " + optimizer_name(optimizer) +
                        " uses the op '" + op->name + "'",
                    graph[id].location);
  }
}

// Returns null if no update is ever skipped.
std::shared_ptr<LossScaler> make_scaler(Trace& trace, const ParameterRange& trained,
                                        const CompileOptions& options) {
  std::optional<LossScale> scale = options.loss_scale;
  if (!scale && options.mixed_precision) scale = LossScale{};
  if (!scale && !options.skip_nonfinite) return nullptr;
  const TraceScope scope(trace);
  return std::make_shared<LossScaler>(trace, trained, scale);
}

}  // namespace

void check_rate(const std::string& who, const Schedule& schedule) {
  const double rate = schedule.at(0);
  if (rate >= 0 && std::isfinite(rate)) return;
  throw UserError(who + ": expected a learning rate of at least 0, got " + number_text(rate));
}

void check_scalar(const std::string& name, double value) {
  const bool clips = name == kClipScalar || name == kClipValueScalar;
  if (clips && !(value > 0))
    throw UserError(name + ": expected more than 0, got " + number_text(value));
  const bool ours = name == kDecayScalar || name.starts_with(std::string(kDecayScalar) + ".") ||
                    name.starts_with(kLrFactorPrefix);
  if (ours && !(value >= 0 && std::isfinite(value)))
    throw UserError(name + ": expected a number of at least 0, got " + number_text(value));
}

CompileRequest training_request(TracedFunction& traced, const ParameterTable& table,
                                const ParameterRange& trained, const CompileOptions& options,
                                const SourceLocation& location, std::optional<int> rank) {
  check_options(options, table, trained, location);
  CompileRequest request;
  request.name = trained.objective.empty() ? "train" : "train_" + trained.objective;
  table.describe(request.plan);
  request.plan.memory_budget = options.memory_budget;
  request.progress = options.progress;
  request.plan.rings = {{"loss", kLossRing}};
  request.in_parts = rank_count(options) > 1;
  if (request.in_parts && !trained.shards_params) {
    request.plan.exchange = kExchange;
    request.plan.bucket_bytes = options.distributed->bucket_bytes();
  }
  request.loss = traced.trace.graph.outputs.at(0).value;
  for (const ParameterEntry& entry : trained.entries) {
    request.wrt.push_back(traced.trace.parameters.at(entry.parameter));
  }
  // The optimizer's ops are added to the trace's graph; compile_graph() passes its own copy.
  const auto scaler = make_scaler(traced.trace, trained, options);
  if (scaler && scaler->scales()) request.loss_scale = scaler->factor();
  if (trained.shards_params && (scaler || options.clip_grad_norm != 0))
    request.plan.exchange = kExchange;  // of the norm
  const int shard = trained.shards == 1 ? 0 : rank.value_or(options.distributed->rank());
  request.extend = [&traced, &trained, &options, location, scaler, shard](
                       Graph& graph, const std::vector<ValueId>& grads) {
    if (std::all_of(grads.begin(), grads.end(),
                    [&](ValueId id) { return graph[id].origin == kZeroGradient; })) {
      throw UserError("compile: the loss has no gradient with respect to any parameter",
                      graph[graph.outputs.at(0).value].location);
    }
    Trace& trace = traced.trace;
    std::swap(trace.graph, graph);
    {
      const TraceScope scope(trace);
      ArenaUpdate update(trace, trained, options.groups, grads, optimizer_name(options.optimizer),
                         shard);
      change_gradients(update, trace, options, scaler.get());
      const ValueId first = trace.graph.size();
      {
        const Composite composite("optimizer", location);
        options.optimizer.apply(update);
      }
      if (trained.shards > 1) check_elementwise(trace.graph, first, options.optimizer, trained);
      if (!update.new_param()) throw UserError("optimizer: set_param() was never called", location);
      if (options.ema_decay > 0) average(update, options.ema_decay);
    }
    std::swap(trace.graph, graph);
  };
  request.graph = traced.trace.graph;
  return request;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
