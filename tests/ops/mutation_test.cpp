// SPDX-License-Identifier: MIT
// Mutation of gradients: each term and factor that a rule adds to a gradient is left out in turn,
// and the test of gradients (gradient_test.cpp) must notice in at least one of its cases.
//
// A mutant is a node of the backward graph, told apart by the op whose rule made it and by what the
// rule made up to it (without views: which there are depends on sizes). It is replaced by each of
// its operands of the same type (an addend or a factor less, a chosen branch always taken, a
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
    "forward";             // the file of a forward node's site; the line is its id
constexpr int kZero = -1;  // instead of the number of an operand

struct Mutant {
  ValueId node = kNoValue;
  int operand = kZero;
  std::string name;
};

// The rule that made a node of the backward graph: of which forward node.
ValueId made_for(const Node& node) {
  return std::string(node.location.file) == kForward ? static_cast<ValueId>(node.location.line)
                                                     : kNoValue;
}

// Which nodes a result needs.
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

// Rules also make gradients of operands that nothing asks for: these are looked at where something
// does. Views, conditions and indices are no terms; neither are constants, of which what holds them
// is. An op without a rule of its own is differentiated as what it expands to, whose rules are
// looked at where they stand by themselves.
std::vector<Mutant> mutants_of(const Graph& graph, ValueId first) {
  std::map<ValueId, std::string> rules;  // so far
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

// The graph with the mutant; what it reads zeros from is the leaf "zero".
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

// Gives what is wrong with gradients, or nothing.
using Check = std::function<std::string(const ValueMap& gradients)>;

class Mutations {
 public:
  void try_on(const OpCase& each) {
    {
      Sketch sketch(11);
      const Embedded made = embed(sketch, each);
      try_all("Gradient of " + each.name, sketch, made.raw, made.loss, differences(40, 1e-6));
    }
    Sketch sketch(13);
    const Embedded made = embed(sketch, each);
    const Tensor loss = loss_of_gradients(sketch, made);
    if (loss.trace() != nullptr)
      try_all("SecondGradient of " + each.name, sketch, made.raw, loss, differences(10, 1e-5));
  }

  void try_on(const Corner& corner) {
    first_at(corner);
    if (!corner.seconds.empty()) second_at(corner);
  }

  [[nodiscard]] const std::map<std::string, std::string>& killers() const { return killers_; }
  // The tests that were asked, and did not notice.
  [[nodiscard]] const std::string& seen(const std::string& mutant) { return seen_[mutant]; }
  [[nodiscard]] const std::set<const OpDef*>& differentiated() const { return differentiated_; }

 private:
  using MakeCheck = std::function<Check(const Graph& forward, const ValueMap& leaves,
                                        const std::vector<Tensor>& raw)>;

  void first_at(const Corner& corner) {
    Sketch sketch;
    const Embedded made = embed(sketch, corner);
    try_all("the corners of " + corner.name, sketch, made.raw, made.loss,
            [&](const Graph&, const ValueMap&, const std::vector<Tensor>&) -> Check {
              return [&](const ValueMap& gradients) { return disagreement(corner, gradients); };
            });
  }

  // The second gradient is that of the mutant.
  void second_at(const Corner& corner) {
    std::vector<Mutant> mutants;
    for (std::size_t next = 0; next == 0 || next <= mutants.size(); ++next) {
      Sketch sketch;
      const Embedded made = embed(sketch, corner);
      tag(sketch.graph());
      const ValueId first = sketch.graph().size();
      const std::vector<Tensor> grads = grad(made.loss, made.raw);
      if (next == 0) {  // how many there are
        for (std::size_t i = 0; i < grads.size(); ++i)
          sketch.output("g" + std::to_string(i), grads[i]);
        mutants = mutants_of(sketch.graph(), first);
        continue;
      }
      const Mutant& mutant = mutants[next - 1];
      if (!alive(mutant)) continue;
      sketch.graph() = mutated(sketch.graph(), mutant);
      sketch.leaves["zero"].resize(
          static_cast<std::size_t>(numel(sketch.graph()[mutant.node].type.shape)));
      const std::string why = second_disagreement(corner, sketch, made, grads);
      if (!why.empty()) killers_[mutant.name] = "second gradient at " + corner.name + ": " + why;
    }
  }

  static MakeCheck differences(std::size_t count, double tolerance) {
    return [=](const Graph& forward, const ValueMap& leaves, const std::vector<Tensor>& raw) {
      const Slopes slopes(forward, leaves, raw, count);
      return [=](const ValueMap& gradients) { return slopes.disagreement(gradients, tolerance); };
    };
  }

  [[nodiscard]] bool alive(const Mutant& mutant) const { return killers_.at(mutant.name).empty(); }

  void try_all(const std::string& test, Sketch& sketch, const std::vector<Tensor>& raw,
               const Tensor& loss, const MakeCheck& make_check) {
    sketch.output("loss", loss);
    const Graph forward = sketch.graph();
    tag(sketch.graph());
    for (const Node& node : forward.nodes) differentiated_.insert(node.op);
    const std::vector<Tensor> grads = grad(loss, raw);
    for (std::size_t i = 0; i < grads.size(); ++i) sketch.output("g" + std::to_string(i), grads[i]);
    const std::vector<Mutant> mutants = mutants_of(sketch.graph(), forward.size());
    for (const Mutant& mutant : mutants) killers_.try_emplace(mutant.name);
    if (std::none_of(mutants.begin(), mutants.end(), [&](auto& m) { return alive(m); })) return;
    const Check check = make_check(forward, sketch.leaves, raw);
    for (const Mutant& mutant : mutants) {
      if (!alive(mutant)) continue;
      ValueMap leaves = sketch.leaves;
      leaves["zero"].resize(
          static_cast<std::size_t>(numel(sketch.graph()[mutant.node].type.shape)));
      const std::string why = check(interpret_graph(mutated(sketch.graph(), mutant), leaves));
      if (!why.empty()) killers_[mutant.name] = test + ": " + why;
      if (why.empty()) seen_[mutant.name] += "\n    not by " + test;
    }
  }

  std::map<std::string, std::string> seen_;
  std::map<std::string, std::string> killers_;  // the test that notices, by mutant
  std::set<const OpDef*> differentiated_;
};

TEST(Mutation, of_any_gradient_fails_a_test) {
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
    // Of these the tests are in custom_test.cpp and autograd_test.cpp.
    if (op->grad == nullptr || op == &ops::custom || op == &ops::barrier) continue;
    EXPECT_TRUE(mutations.differentiated().contains(op)) << op->name;
  }
}

}  // namespace
}  // namespace tensorgrad::testing
