// SPDX-License-Identifier: MIT
// Mutation testing of gradients: removes each term and factor that a rule adds to a gradient in
// turn. The gradient test (gradient_test.cpp) must notice in at least one of its cases.
//
// A mutant is a node of the backward graph. It is identified by the op whose rule created it and by
// the ops that the rule created up to it, except views, which depend on sizes. Each mutant replaces
// the node by zeros or by one of its operands of the same type. This drops an addend or factor,
// always takes one branch, or skips a function.
// function not applied) and by zeros.
#include <algorithm>
#include <fstream>

#include "op_cases.h"
#include "ops/registry.h"
#include "slopes.h"
#include "support/sanitized.h"

namespace tensorgrad::testing {
namespace {

constexpr const char* kForward =
    "forward";             // file name of a forward node's location; its line is the node's id
constexpr int kZero = -1;  // in place of an operand index

struct Mutant {
  ValueId node = kNoValue;
  int operand = kZero;
  std::string name;
};

// Returns the forward node whose rule created a node of the backward graph.
ValueId made_for(const Node& node) {
  return std::string(node.location.file) == kForward ? static_cast<ValueId>(node.location.line)
                                                     : kNoValue;
}

// Marks the nodes that a result depends on.
std::vector<bool> reaching(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (const GraphOutput& output : graph.outputs)
    needed[static_cast<std::size_t>(output.value)] = true;
  for (ValueId id = graph.size() - 1; id >= 0; --id) {
    if (!needed[static_cast<std::size_t>(id)]) continue;
    for (const ValueId input : graph[id].inputs) needed[static_cast<std::size_t>(input)] = true;
  }
  return needed;
}

// Returns the mutants of the backward graph, which begins at node `first`. Gradients that no result
// depends on are left to other cases. Views, conditions and indices are not terms. Constants are
// not mutated, but the nodes that use them are. An op without its own rule is differentiated
// through its expansion, whose rules are tested on their own.
std::vector<Mutant> mutants_of(const Graph& graph, ValueId first) {
  std::map<ValueId, std::string> rules;  // by forward node, up to the current node
  std::vector<bool> fixed(graph.nodes.size(), false);
  const std::vector<bool> needed = reaching(graph);
  std::vector<Mutant> mutants;
  for (ValueId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    const auto is_fixed = [&](ValueId of) { return fixed[static_cast<std::size_t>(of)]; };
    fixed[static_cast<std::size_t>(id)] =
        node.op->kind == OpKind::kGenerator || node.op == &ops::constant ||
        (!node.inputs.empty() && std::all_of(node.inputs.begin(), node.inputs.end(), is_fixed));
    if (id < first || node.op->kind == OpKind::kLeaf || node.op->kind == OpKind::kView) continue;
    const ValueId of = made_for(node);
    std::string& rule = rules[of];
    rule += std::string(" ") + node.op->name;
    if (is_fixed(id) || node.type.dtype != f32 || !needed[static_cast<std::size_t>(id)]) continue;
    if (of != kNoValue && graph[of].op->grad == nullptr) continue;
    const auto add = [&](int operand, const std::string& what) {
      const std::string op = of == kNoValue ? "loss" : graph[of].op->name;
      mutants.push_back({id, operand, op + ": the last of" + rule + " is " + what});
    };
    add(kZero, "0");
    if (node.op->kind != OpKind::kPointwise) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (graph[node.inputs[i]].type == node.type && !is_fixed(node.inputs[i]))
        add(static_cast<int>(i), "its operand " + std::to_string(i));
    }
  }
  return mutants;
}

// Returns the graph with the mutant applied. Zeros are read from the leaf "zero".
Graph mutated(Graph graph, const Mutant& mutant) {
  Node& node = graph[mutant.node];
  if (mutant.operand == kZero) {
    node.attrs = {{"name", "zero"},
                  {"dtype", static_cast<std::int64_t>(node.type.dtype)},
                  {"shape", node.type.shape}};
    node.inputs.clear();
    node.op = &ops::input;
  } else {
    node.inputs = {node.inputs[static_cast<std::size_t>(mutant.operand)]};
    node.attrs = {{"shape", node.type.shape}};
    node.op = &ops::reshape;
  }
  return graph;
}

void tag(Graph& graph) {
  for (ValueId id = 0; id < graph.size(); ++id)
    graph[id].location = SourceLocation(kForward, static_cast<unsigned>(id));
}

// Returns what is wrong with the gradients, or an empty string.
using Check = std::function<std::string(const ValueMap& gradients)>;

class Mutations {
 public:
  void try_on(const OpCase& each) {
    {
      GraphBuilder builder(11);
      const Embedded made = embed(builder, each);
      try_all("Gradient of " + each.name, builder, made.raw, made.loss, differences(40, 1e-6));
    }
    GraphBuilder builder(13);
    const Embedded made = embed(builder, each);
    const Tensor loss = loss_of_gradients(builder, made);
    if (loss.trace() != nullptr)
      try_all("SecondGradient of " + each.name, builder, made.raw, loss, differences(10, 1e-5));
  }

  void try_on(const Corner& corner) {
    first_at(corner);
    if (!corner.seconds.empty()) second_at(corner);
  }

  [[nodiscard]] const std::map<std::string, std::string>& killers() const { return killers_; }
  // Returns the tests that ran on this mutant and did not notice it.
  [[nodiscard]] const std::string& seen(const std::string& mutant) { return seen_[mutant]; }
  [[nodiscard]] const std::set<const OpDef*>& differentiated() const { return differentiated_; }

 private:
  using MakeCheck = std::function<Check(const Graph& forward, const ValueMap& leaves,
                                        const std::vector<Tensor>& raw)>;

  void first_at(const Corner& corner) {
    GraphBuilder builder;
    const Embedded made = embed(builder, corner);
    try_all("the corners of " + corner.name, builder, made.raw, made.loss,
            [&](const Graph&, const ValueMap&, const std::vector<Tensor>&) -> Check {
              return [&](const ValueMap& gradients) { return disagreement(corner, gradients); };
            });
  }

  // Differentiates the mutated gradient again.
  void second_at(const Corner& corner) {
    std::vector<Mutant> mutants;
    for (std::size_t next = 0; next == 0 || next <= mutants.size(); ++next) {
      GraphBuilder builder;
      const Embedded made = embed(builder, corner);
      tag(builder.graph());
      const ValueId first = builder.graph().size();
      const std::vector<Tensor> grads = grad(made.loss, made.raw);
      if (next == 0) {  // collects the mutants
        for (std::size_t i = 0; i < grads.size(); ++i)
          builder.output("g" + std::to_string(i), grads[i]);
        mutants = mutants_of(builder.graph(), first);
        continue;
      }
      const Mutant& mutant = mutants[next - 1];
      if (!alive(mutant)) continue;
      builder.graph() = mutated(builder.graph(), mutant);
      builder.leaves["zero"].resize(
          static_cast<std::size_t>(numel(builder.graph()[mutant.node].type.shape)));
      const std::string reason = second_disagreement(corner, builder, made, grads);
      if (!reason.empty())
        killers_[mutant.name] = "second gradient at " + corner.name + ": " + reason;
    }
  }

  static MakeCheck differences(std::size_t count, double tolerance) {
    return [=](const Graph& forward, const ValueMap& leaves, const std::vector<Tensor>& raw) {
      const Slopes slopes(forward, leaves, raw, count);
      return [=](const ValueMap& gradients) { return slopes.disagreement(gradients, tolerance); };
    };
  }

  [[nodiscard]] bool alive(const Mutant& mutant) const { return killers_.at(mutant.name).empty(); }

  void try_all(const std::string& test, GraphBuilder& builder, const std::vector<Tensor>& raw,
               const Tensor& loss, const MakeCheck& make_check) {
    builder.output("loss", loss);
    const Graph forward = builder.graph();
    tag(builder.graph());
    for (const Node& node : forward.nodes) differentiated_.insert(node.op);
    const std::vector<Tensor> grads = grad(loss, raw);
    for (std::size_t i = 0; i < grads.size(); ++i)
      builder.output("g" + std::to_string(i), grads[i]);
    const std::vector<Mutant> mutants = mutants_of(builder.graph(), forward.size());
    for (const Mutant& mutant : mutants) killers_.try_emplace(mutant.name);
    if (std::none_of(mutants.begin(), mutants.end(), [&](auto& m) { return alive(m); })) return;
    const Check check = make_check(forward, builder.leaves, raw);
    for (const Mutant& mutant : mutants) {
      if (!alive(mutant)) continue;
      ValueMap leaves = builder.leaves;
      leaves["zero"].resize(
          static_cast<std::size_t>(numel(builder.graph()[mutant.node].type.shape)));
      const std::string reason = check(interpret_graph(mutated(builder.graph(), mutant), leaves));
      if (!reason.empty()) killers_[mutant.name] = test + ": " + reason;
      if (reason.empty()) seen_[mutant.name] += "\n    not by " + test;
    }
  }

  std::map<std::string, std::string> seen_;
  std::map<std::string, std::string> killers_;  // the test that notices, by mutant
  std::set<const OpDef*> differentiated_;
};

TEST(Mutation, of_each_gradient_fails_a_test) {
  if (kSanitized) GTEST_SKIP() << "tried in the Release build";
  Mutations mutations;
  for (const OpCase& each : all_cases()) {
    if (each.differentiable) mutations.try_on(each);
  }
  for (const Corner& corner : corners()) mutations.try_on(corner);
  std::ofstream report(std::string(TENSORGRAD_BINARY_DIR) + "/gradient_mutations.txt");
  int survivors = 0;
  for (const auto& [mutant, killer] : mutations.killers()) {
    report << mutant
           << (killer.empty() ? "\n  SURVIVES" + mutations.seen(mutant) + "\n"
                              : "\n  noticed by " + killer + "\n");
    if (!killer.empty()) continue;
    ++survivors;
    ADD_FAILURE() << "nobody notices that of " << mutant;
  }
  report << mutations.killers().size() << " mutants, " << survivors << " survive\n";
  for (const OpDef* op : all_ops()) {
    // custom_test.cpp and autograd_test.cpp test these.
    if (op->grad == nullptr || op == &ops::custom || op == &ops::barrier) continue;
    EXPECT_TRUE(mutations.differentiated().contains(op)) << op->name;
  }
}

}  // namespace
}  // namespace tensorgrad::testing
