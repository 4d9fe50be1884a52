// SPDX-License-Identifier: MIT
#include "compile/debug/graph_run.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "compile/runtime/element_codec.h"
#include "compile/runtime/host_random.h"
#include "compile/runtime/index_bounds.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::int64_t kFreeIntegers = 8;  // integers that are not indices are below this
constexpr double kScalarValue = 0.5;

bool in_arena(const Node& node) { return node.op == &ops::parameter || node.op == &ops::arena; }
bool is_stored(const Node& node) {
  return node.op->kind == OpKind::kLeaf && node.op->eval == nullptr;
}

std::size_t offset_of(const Node& leaf) {
  return in_arena(leaf) ? static_cast<std::size_t>(leaf.attrs.integer("offset")) : 0;
}

std::size_t count_of(const Node& node) { return static_cast<std::size_t>(numel(node.type.shape)); }

// Returns the random stream of a leaf. Each leaf has its own, so that its values do not depend on
// the others.
std::uint32_t random_stream(const std::string& name) {
  std::uint32_t state = 2166136261U;
  for (const char c : name) state = (state ^ static_cast<unsigned char>(c)) * 16777619U;
  return state;
}

// The destination of a value given by name: a leaf, from one of its elements on.
struct Target {
  const Node* leaf = nullptr;
  std::size_t offset = 0;
  Type type;  // of the value
};

// Returns the destinations of all names by which a value may be given.
std::map<std::string, Target> targets_of(const Graph& graph) {
  std::map<std::string, Target> targets;
  std::vector<const Node*> parameters, states;
  std::size_t trained = 0;  // start of the trained part of the arena, whose layout the states share
  for (const Node& node : graph.nodes) {
    if (!is_stored(node)) continue;
    targets.emplace(node.attrs.text("name"), Target{&node, 0, node.type});
    if (node.op == &ops::parameter) parameters.push_back(&node);
    if (node.op == &ops::state) states.push_back(&node);
    if (node.op == &ops::arena) trained = offset_of(node);
  }
  for (const Node* const state : states) {
    const std::string name = "state/" + state->attrs.text("name");
    targets.emplace(name, Target{state, 0, state->type});
    for (const Node* const parameter : parameters) {
      if (offset_of(*parameter) < trained) continue;
      const std::size_t offset = offset_of(*parameter) - trained;
      const bool fits = offset + count_of(*parameter) <= count_of(*state);
      if (!fits || parameter->type.dtype != state->type.dtype) continue;
      targets.emplace(name + "/" + parameter->attrs.text("name"),
                      Target{state, offset, parameter->type});
    }
  }
  return targets;
}

class Filler {
 public:
  Filler(const Graph& graph, const std::map<std::string, GivenLeaf>& given, std::uint32_t seed)
      : graph_(graph), seed_(seed), bounds_(index_bounds(graph)) {
    take(given);
  }

  LeafWords run() {
    std::size_t arena = 0;
    for (const Node& node : graph_.nodes) {
      if (is_stored(node) && in_arena(node))
        arena = std::max(arena, offset_of(node) + count_of(node));
    }
    leaves_.params = uniform("params", arena, 1);
    // Whole arenas first: the values of a parameter replace part of its arena.
    for (const bool parameters : {false, true}) {
      for (const Node& node : graph_.nodes) {
        if (is_stored(node) && (node.op == &ops::parameter) == parameters) fill(node);
      }
    }
    return std::move(leaves_);
  }

 private:
  void take(const std::map<std::string, GivenLeaf>& given) {
    const std::map<std::string, Target> targets = targets_of(graph_);
    for (const auto& [name, value] : given) {
      const auto at = targets.find(name);
      if (at == targets.end()) {
        leaves_.ignored.push_back(name);
        continue;
      }
      const auto& [leaf, offset, type] = at->second;
      if (value.type != type) {
        throw UserError(
            "leaf '" + name + "': expected " + to_string(type) + ", got " + to_string(value.type),
            leaf->location);
      }
      given_[leaf].push_back({offset, &value.words});
    }
    if (!given.empty() && given_.empty()) {
      throw UserError("unknown leaf '" + leaves_.ignored[0] + "'; available: " + leaf_names());
    }
  }

  [[nodiscard]] std::string leaf_names() const {
    std::string names;
    for (const Node& node : graph_.nodes) {
      if (is_stored(node)) names += (names.empty() ? "" : ", ") + node.attrs.text("name");
    }
    return names.empty() ? "none" : names;
  }

  void fill(const Node& node) {
    const std::string& name = node.attrs.text("name");
    const auto given = given_.find(&node);
    if (node.op == &ops::arena && given == given_.end()) return;
    std::vector<std::uint32_t> words = made_up(node);
    if (given != given_.end()) {
      for (const Part& part : given->second) copy_to(words, part.offset, *part.words);
    }
    if (in_arena(node)) {
      copy_to(leaves_.params, offset_of(node), words);
    } else if (!leaves_.by_name.emplace(name, std::move(words)).second) {
      throw UserError("two leaves are named '" + name + "'", node.location);
    }
  }

  static void copy_to(std::vector<std::uint32_t>& to, std::size_t offset,
                      const std::vector<std::uint32_t>& words) {
    std::copy(words.begin(), words.end(), to.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  [[nodiscard]] std::vector<std::uint32_t> made_up(const Node& node) const {
    const std::string& name = node.attrs.text("name");
    const DType dtype = node.type.dtype;
    if (node.op == &ops::scalar) {
      const double value = dtype == DType::kF32 ? kScalarValue : name == kSeedScalar ? seed_ : 0;
      return {encode_element(value, dtype)};
    }
    if (node.op == &ops::state) {
      return std::vector<std::uint32_t>(count_of(node),
                                        encode_element(node.attrs.number("init"), dtype));
    }
    if (dtype == DType::kF32 || dtype == DType::kF16) {
      const bool weight = node.op == &ops::parameter && node.type.shape.size() >= 2;
      const double fan = weight ? static_cast<double>(node.type.shape.back()) : 1;
      return uniform(name, count_of(node), 1 / std::sqrt(fan), dtype);
    }
    std::int64_t limit = dtype == DType::kBool ? 2 : kFreeIntegers;
    const auto found = bounds_.find(name);
    if (found != bounds_.end()) {
      limit = found->second[0].size;
      for (const IndexBound& bound : found->second) limit = std::min(limit, bound.size);
    }
    std::vector<std::uint32_t> words(count_of(node));
    for (std::size_t i = 0; i < words.size(); ++i) {
      const double value = random(name, i) * static_cast<double>(limit);
      words[i] = static_cast<std::uint32_t>(value);
    }
    return words;
  }

  [[nodiscard]] double random(const std::string& name, std::size_t i) const {
    return uniform_of(random_word(static_cast<std::uint32_t>(i), random_stream(name), seed_, 0));
  }

  [[nodiscard]] std::vector<std::uint32_t> uniform(const std::string& name, std::size_t count,
                                                   double scale, DType dtype = DType::kF32) const {
    std::vector<std::uint32_t> words(count);
    for (std::size_t i = 0; i < count; ++i) {
      words[i] = encode_element((2 * random(name, i) - 1) * scale, dtype);
    }
    return words;
  }

  struct Part {
    std::size_t offset;
    const std::vector<std::uint32_t>* words;
  };

  const Graph& graph_;
  std::map<const Node*, std::vector<Part>> given_;
  std::uint32_t seed_;
  std::map<std::string, std::vector<IndexBound>> bounds_;
  LeafWords leaves_;
};

std::string buffer_of(const Node& leaf) {
  if (in_arena(leaf)) return buffer_name(BufferKind::kParams, "");
  const std::string& name = leaf.attrs.text("name");
  if (leaf.op == &ops::state) return state_buffer(name);
  return leaf.op == &ops::data ? data_buffer(name) : input_buffer(name);
}

// Uploads the leaves and returns the runtime scalars.
ScalarValues upload_leaves(Instance& instance, const Graph& graph, const LeafWords& leaves,
                           const PlanOptions& plan) {
  ScalarValues scalars;
  for (const Node& node : graph.nodes) {
    if (!is_stored(node)) continue;
    const std::string buffer = buffer_of(node);
    if (node.op == &ops::scalar) {
      scalars[node.attrs.text("name")] = leaves.by_name.at(node.attrs.text("name")).at(0);
    } else if (instance.has_buffer(buffer)) {
      const auto& words =
          in_arena(node) ? leaves.params : leaves.by_name.at(node.attrs.text("name"));
      const DType stored = dtype_in_memory(node.type.dtype, plan.stores_f16);
      instance.upload(buffer, 0, to_stored(words, stored));
    }
  }
  return scalars;
}

}  // namespace

LeafWords fill_leaves(const Graph& graph, const std::map<std::string, GivenLeaf>& given,
                      std::uint32_t seed) {
  return Filler(graph, given, seed).run();
}

std::vector<double> leaf_values(const Node& leaf, const LeafWords& leaves) {
  const auto& words = in_arena(leaf) ? leaves.params : leaves.by_name.at(leaf.attrs.text("name"));
  std::vector<double> values;
  values.reserve(count_of(leaf));
  for (std::size_t i = 0; i < count_of(leaf); ++i) {
    values.push_back(decode_element(words.at(offset_of(leaf) + i), leaf.type.dtype));
  }
  return values;
}

std::vector<ResultInfo> results_of(const Graph& graph) {
  std::vector<ResultInfo> results;
  results.reserve(graph.outputs.size() + graph.updates.size());
  for (const GraphOutput& output : graph.outputs) results.push_back({output.name, output.value});
  for (const GraphUpdate& update : graph.updates) {
    results.push_back({"update " + graph[update.leaf].attrs.text("name"), update.value});
  }
  return results;
}

std::vector<std::vector<std::uint32_t>> run_on_device(const Graph& graph, const LeafWords& leaves,
                                                      const std::shared_ptr<Device>& device,
                                                      const GraphRunOptions& options) {
  CompileRequest request;
  request.name = "ir";
  request.graph = graph;
  request.skip = options.skip;
  request.rematerializing = options.rematerializing;
  request.split_all = options.split_all;
  compile_for(device->info(), request);
  if (options.cached_elements >= 0) request.fusing.cached_elements = options.cached_elements;
  request.plan.memory_budget = options.memory_budget;
  request.plan.params_elements = static_cast<std::int64_t>(leaves.params.size());
  const PlanOptions plan = request.plan;
  const Compiled compiled = compile_graph(std::move(request));
  Instance instance(device, compiled.program);
  instance.inspect(compiled, plan);
  if (options.shadow) instance.shadow(compiled, plan);
  const ScalarValues scalars = upload_leaves(instance, graph, leaves, plan);
  instance.wait(instance.run({&scalars, 1}));
  std::vector<std::vector<std::uint32_t>> results;
  const auto read = [&](const std::string& buffer, std::size_t offset, const Node& node) {
    const DType stored = dtype_in_memory(node.type.dtype, plan.stores_f16);
    std::vector<std::byte> bytes(stored_bytes(count_of(node), stored));
    instance.download(buffer, static_cast<std::int64_t>(offset * element_bytes(stored)), bytes);
    results.push_back(from_stored(bytes, count_of(node), stored));
  };
  for (const GraphOutput& output : graph.outputs) {
    read(output_buffer(output.name), 0, graph[output.value]);
  }
  for (const GraphUpdate& update : graph.updates) {
    const Node& leaf = graph[update.leaf];
    read(buffer_of(leaf), offset_of(leaf), leaf);
  }
  return results;
}

std::vector<WithErrorBound> run_on_reference(const Graph& graph, const LeafWords& leaves,
                                             double tolerance) {
  ErrorBoundOptions options;
  options.leaf = [&](const Node& leaf) { return leaf_values(leaf, leaves); };
  options.tolerance = tolerance;
  return interpret_with_error_bound(graph, options);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
