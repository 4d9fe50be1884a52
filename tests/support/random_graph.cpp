// SPDX-License-Identifier: MIT
#include "support/random_graph.h"

#include "compile/debug/graph_run.h"
#include "ops/registry.h"
#include "passes/autodiff.h"
#include "support/graph_generator.h"
#include "train/training_graph.h"

namespace tensorgrad::testing {
namespace {

constexpr std::uint64_t kScramble = 0x9E3779B97F4A7C15ULL;

struct Weights {
  std::vector<Parameter> w;
  TG_MODULE(w)
};

Optimizer random_optimizer(Draw& draw) {
  const bool some = draw.chance(0.5);
  switch (draw.whole(0, 8)) {
    case 0: return optim::SGD{.lr = 1e-1};
    case 1: return optim::SGD{.lr = 1e-1, .momentum = 0.9, .nesterov = some, .weight_decay = 0.1};
    case 2: return optim::Adam{.lr = 1e-1, .eps = 1e-2, .amsgrad = some};
    case 3: return optim::NAdam{.lr = 1e-1, .eps = 1e-2};
    case 4: return optim::RMSprop{.lr = 1e-1, .eps = 1e-2, .momentum = 0.5, .centered = some};
    case 5: return optim::Adagrad{.lr = 1e-1, .eps = 1e-2};
    case 6: return optim::Adadelta{.lr = 1e-1, .eps = 1e-2};
    case 7: return optim::Lion{.lr = 1e-1, .weight_decay = 0.1};
    default: return optim::AdamW{.lr = 1e-1, .eps = 1e-2};
  }
}

CompileOptions random_options(Draw& draw) {
  CompileOptions options{.optimizer = random_optimizer(draw)};
  if (draw.chance(0.2)) options.clip_grad_norm = 0.5;
  if (draw.chance(0.1)) options.clip_grad_value = 0.2;
  if (draw.chance(0.1)) options.accumulate = 3;
  if (draw.chance(0.1)) options.ema_decay = 0.9;
  if (draw.chance(0.1)) options.skip_nonfinite = true;
  if (draw.chance(0.2)) {
    options.groups.push_back({.params = "w.0", .name = "first", .lr_factor = 0.5});
  }
  return options;
}

// Returns the weights that the graph of a seed requests.
std::vector<Parameter> weights_of(std::uint64_t seed, const RandomGraphOptions& options) {
  Trace trace;
  const TraceScope scope(trace);
  GraphGenerator generator(seed, options, [&](std::size_t number, const Shape& shape) {
    return trace.tensor(trace.graph.add(ops::input, {},
                                        {{"name", "w" + std::to_string(number)},
                                         {"dtype", static_cast<std::int64_t>(f32)},
                                         {"shape", shape}}));
  });
  generator.run();
  return {generator.weights.begin(), generator.weights.end()};
}

}  // namespace

RandomGraph random_graph(std::uint64_t seed, const RandomGraphOptions& options) {
  const std::uint64_t growing = seed * kScramble + 1;
  const Weights model{weights_of(growing, options)};
  Draw draw(growing + 1);
  const CompileOptions training = random_options(draw);
  const ParameterTable table({[&](ParameterVisitor& visitor) { model.visit_fields(visitor); }, {}},
                             {{.objective = "", .groups = training.groups}});
  GraphGenerator generator(growing, options, [&](std::size_t number, const Shape&) {
    return Tensor(model.w.at(number));
  });
  const auto traced = trace_function(
      table, {}, {}, 0,
      [&](const Inputs&) { return std::map<std::string, Tensor>{{"loss", generator.run()}}; },
      {.training = true}, {});
  for (const auto& [name, tensor] : generator.outputs)
    traced->trace.graph.outputs.push_back({name, tensor.id()});
  CompileRequest request = training_request(*traced, table, table.part(0), training, {});
  RandomGraph made{std::move(request.graph), {}};
  const std::vector<ValueId> grads = autodiff(made.graph, request.loss, request.wrt);
  request.extend(made.graph, grads);
  for (std::size_t i = 0; i < grads.size(); ++i)
    made.graph.outputs.push_back({"d w." + std::to_string(i), grads[i]});
  const LeafWords words = fill_leaves(made.graph, {}, static_cast<std::uint32_t>(seed));
  for (const Node& node : made.graph.nodes) {
    if (node.op->kind == OpKind::kLeaf && node.op->eval == nullptr)
      made.leaves[node.attrs.text("name")] = leaf_values(node, words);
  }
  return made;
}

}  // namespace tensorgrad::testing
