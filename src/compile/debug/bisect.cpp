// SPDX-License-Identifier: MIT
#include "compile/debug/bisect.h"

#include "base/check.h"
#include "compile/runtime/element_codec.h"
#include "ir/sources.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr const char* kAsGiven = "as given";

using Results = std::vector<std::vector<double>>;

Results results_from(const Graph& graph, const std::vector<std::vector<std::uint32_t>>& words) {
  const std::vector<ResultInfo> infos = results_of(graph);
  Results results;
  for (std::size_t r = 0; r < words.size(); ++r) {
    const DType dtype = graph[infos[r].value].type.dtype;
    results.emplace_back();
    for (const std::uint32_t word : words[r]) results.back().push_back(decode_element(word, dtype));
  }
  return results;
}

std::string node_text(const Graph& graph, ValueId id) {
  return "%" + std::to_string(id) + " = " + print(graph[id]);
}

class Bisection {
 public:
  Bisection(const LeafWords& leaves, const BisectOptions& options)
      : leaves_(leaves), options_(options), passes_(options.passes.begin(), options.passes.end()) {
    const DeviceInfo& device = options.b->info();
    const auto splits =
        late_passes(device.limits.max_binding_bytes, !device.cuts_rows, {}, false, device.gpu);
    passes_.insert(passes_.end(), splits.begin(), splits.end());
  }

  BisectReport run(Graph graph) {
    const std::vector<WithErrorBound> first = reference(graph);
    if (differs(graph, kAsGiven, first)) return report_;
    std::uint64_t before = hash(graph);
    for (const GraphPass& pass : passes_) {
      graph = pass.run(graph);
      verify(graph);
      if (hash(graph) == before) {
        report_.checked.push_back(pass.name + ": unchanged");
        continue;
      }
      before = hash(graph);
      const std::vector<WithErrorBound> after = reference(graph);
      if (changed(graph, pass.name, first, after) || differs(graph, pass.name, after)) {
        return report_;
      }
    }
    check_fused(graph, reference(graph));
    return report_;
  }

 private:
  [[nodiscard]] std::vector<WithErrorBound> reference(const Graph& graph) const {
    return run_on_reference(graph, leaves_, options_.tolerance);
  }

  [[nodiscard]] Results on_device(const Graph& graph, const std::shared_ptr<Device>& device,
                                  const std::vector<std::string>& skip) const {
    return results_from(graph, run_on_device(graph, leaves_, device, {.skip = skip}));
  }

  // Returns the results of `a`, with the error bounds for `b`. Either of two devices may be off, so
  // the bounds are doubled.
  [[nodiscard]] std::vector<WithErrorBound> wanted(const Graph& graph,
                                                   std::vector<WithErrorBound> values) const {
    if (!options_.a) return values;
    const Results given = on_device(graph, options_.a, unfused_);
    for (std::size_t r = 0; r < values.size(); ++r) {
      values[r].value.data = given[r];
      for (double& error : values[r].error) error *= 2;
    }
    return values;
  }

  void found(const std::string& pass, const std::string& what, const SourceLocation& location) {
    report_.pass = pass;
    report_.what = what;
    report_.location = location;
    report_.checked.push_back(pass + ": different");
  }

  void passed(const std::string& pass) { report_.checked.push_back(pass + ": the same"); }

  // Compares the reference on the graph before all passes with the reference on this graph.
  bool changed(const Graph& graph, const std::string& pass, std::vector<WithErrorBound> before,
               const std::vector<WithErrorBound>& after) {
    const std::vector<ResultInfo> infos = results_of(graph);
    for (std::size_t r = 0; r < infos.size(); ++r) {
      before[r].error.resize(before[r].value.data.size());  // it is empty if all elements are exact
      for (std::size_t i = 0; i < before[r].error.size(); ++i) {
        before[r].error[i] += after[r].error_at(i);
      }
      const auto difference = first_difference(before[r], after[r].value.data);
      if (!difference) continue;
      const Node& node = graph[infos[r].value];
      found(pass,
            "the pass changes what the graph means: " + infos[r].name + ", " +
                node_text(graph, infos[r].value) + ": on the reference, " +
                to_string(*difference, node.type.shape),
            node.location);
      return true;
    }
    return false;
  }

  // Compares both sides on this graph, unfused.
  bool differs(const Graph& graph, const std::string& pass,
               const std::vector<WithErrorBound>& values) {
    const std::vector<WithErrorBound> want = wanted(graph, values);
    const Results got = on_device(graph, options_.b, unfused_);
    if (!compare(graph, pass, want, got)) {
      passed(pass);
      return false;
    }
    find_node(graph);
    return true;
  }

  bool compare(const Graph& graph, const std::string& pass, const std::vector<WithErrorBound>& want,
               const Results& got) {
    const std::vector<ResultInfo> infos = results_of(graph);
    for (std::size_t r = 0; r < infos.size(); ++r) {
      const auto difference = first_difference(want[r], got[r]);
      if (!difference) continue;
      const Node& node = graph[infos[r].value];
      found(pass,
            infos[r].name + ", " + node_text(graph, infos[r].value) + ": on " + name_of_b() + ", " +
                to_string(*difference, node.type.shape),
            node.location);
      return true;
    }
    return false;
  }

  [[nodiscard]] std::string name_of_b() const { return options_.b->info().backend; }

  // Runs every node of the graph on `b` and compares it with the reference, evaluated from the
  // inputs that `b` had. Reports the first node that differs. If none does, the report keeps naming
  // the result.
  void find_node(const Graph& graph) {
    Graph all = graph;
    all.outputs.clear();
    all.updates.clear();
    for (ValueId id = 0; id < graph.size(); ++id) {
      if (is_computed(graph[id])) all.outputs.push_back({"v" + std::to_string(id), id});
    }
    const Results got = on_device(all, options_.b, unfused_);
    std::vector<WithErrorBound> values(graph.nodes.size());
    std::size_t next = 0;
    for (ValueId id = 0; id < graph.size(); ++id) {
      const Node& node = graph[id];
      WithErrorBound& value = values[static_cast<std::size_t>(id)];
      if (node.op->eval == nullptr) {
        value.value = {node.type, leaf_values(node, leaves_)};
        continue;
      }
      std::vector<const WithErrorBound*> inputs;
      inputs.reserve(node.inputs.size());
      for (const ValueId input : node.inputs) {
        inputs.push_back(&values[static_cast<std::size_t>(input)]);
      }
      value = evaluate_with_error_bound(node, inputs, options_.tolerance);
      if (!is_computed(node)) continue;
      const std::vector<double>& given = got[next++];
      const auto difference = first_difference(value, given);
      if (difference) {
        report_.what = node_text(graph, id) + ": on " + name_of_b() + ", " +
                       to_string(*difference, node.type.shape);
        report_.location = node.location;
        return;
      }
      value = {{node.type, given}, {}};
    }
  }

  void check_fused(const Graph& graph, const std::vector<WithErrorBound>& values) {
    if (!compare(graph, "fuse", wanted(graph, values), on_device(graph, options_.b, {}))) {
      passed("fuse");
      return;
    }
    try {
      run_on_device(graph, leaves_, options_.b, {.shadow = true});
    } catch (const InternalError& error) {  // names the launch, the value and the element
      report_.what = error.message();
      report_.location = error.location();
    }
  }

  const LeafWords& leaves_;
  const BisectOptions& options_;
  std::vector<GraphPass> passes_;
  // Passes to skip so that every node is a separate launch and nothing is rewritten.
  std::vector<std::string> unfused_ = pass_names();
  BisectReport report_;
};

}  // namespace

BisectReport bisect(const Graph& graph, const LeafWords& leaves, const BisectOptions& options) {
  CHECK(options.b != nullptr);
  return Bisection(leaves, options).run(graph);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
