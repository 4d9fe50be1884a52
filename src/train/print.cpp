// SPDX-License-Identifier: MIT
#include "tensorgrad/train/debug.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/env.h"
#include "compile/debug/bisect.h"
#include "compile/debug/graph_run.h"
#include "compile/runtime/element_codec.h"
#include "ops/expr.h"
#include "ops/registry.h"
#include "train/feed.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr const char* kReference = "reference";

// Throws DtypeError if an op that does not support f16 has an f16 operand. In traced graphs,
// op::apply() inserts casts.
void check_f16_operands(const Graph& graph, const std::string& file) {
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (op::takes_f16(*node.op)) continue;
    for (const ValueId input : node.inputs) {
      if (graph[input].type.dtype != DType::kF16) continue;
      throw DtypeError(file + ": %" + std::to_string(id) + ": " + node.op->name +
                           ": expected operands of four bytes, got " +
                           to_string(graph[input].type) + "; cast it to f32",
                       node.location);
    }
  }
}

// Throws UserError if leaves and results need more memory than allowed. For the reference
// interpreter, which keeps all values as doubles, counts all values.
void check_memory(const Graph& graph, const std::string& file, std::uint64_t max_bytes,
                  bool reference) {
  double total = 0;
  const auto add = [&](const Node& node, std::size_t each) {
    total += static_cast<double>(numel(node.type.shape)) * static_cast<double>(each);
    if (total <= static_cast<double>(max_bytes)) return;
    throw UserError(file + ": needs more than " + std::to_string(max_bytes) +
                        " bytes of memory, the limit (max_bytes), with " + node.op->name + " " +
                        to_string(node.type),
                    node.location);
  };
  for (const Node& node : graph.nodes) {
    if (reference) {
      add(node, sizeof(double));
    } else if (node.op->kind == OpKind::kLeaf && node.op != &ops::constant) {
      add(node, sizeof(std::uint32_t));
    }
  }
  for (const ResultInfo& result : results_of(graph))
    add(graph[result.value], sizeof(std::uint32_t));
}

Graph parsed(std::string_view text, const std::string& file) {
  Graph graph = parse(text, file, find_op);
  check_f16_operands(graph, file);
  if (graph.outputs.empty() && graph.updates.empty()) {
    throw IoError(file + ": the graph has no output and no update");
  }
  return graph;
}

LeafWords leaf_words(const Graph& graph, const ir::LeafOptions& options) {
  std::map<std::string, GivenLeaf> given;
  for (const auto& [name, tensor] : options.values) {
    GivenLeaf& leaf = given[name];
    leaf.type = {tensor.dtype, tensor.shape};
    const std::size_t each = element_bytes(tensor.dtype);
    if (tensor.bytes.size() != static_cast<std::size_t>(numel(tensor.shape)) * each) {
      throw ShapeError("leaf '" + name + "': " + to_string(tensor.shape) + " has " +
                       std::to_string(numel(tensor.shape)) + " elements of " +
                       std::to_string(each) + " bytes, got " + std::to_string(tensor.bytes.size()) +
                       " bytes");
    }
    leaf.words = encode_elements(tensor);
  }
  return fill_leaves(graph, given, options.seed);
}

// Opens a device. Returns null for the reference interpreter.
std::shared_ptr<Device> opened(const DeviceOptions& options, std::string& text) {
  text = kReference;
  if (options.kind == kReference) return nullptr;
  std::string reason;
  std::shared_ptr<Device> device = open_device(options, reason);
  text = device->info().backend + " (" + device->info().name + ")";
  return device;
}

std::vector<std::vector<std::uint32_t>> reference_words(const Graph& graph,
                                                        const LeafWords& leaves) {
  std::vector<std::vector<std::uint32_t>> all;
  for (const WithErrorBound& result : run_on_reference(graph, leaves)) {
    all.emplace_back();
    for (const double value : result.value.data) {
      all.back().push_back(encode_element(value, result.value.type.dtype));
    }
  }
  return all;
}

}  // namespace

std::vector<EnvironmentSwitch> environment() {
  std::vector<EnvironmentSwitch> all;
  for (const EnvSwitch& each : env_switches())
    all.push_back({each.name, each.meaning, env(each.name)});
  return all;
}

namespace ir {

std::vector<std::string> passes() { return pass_names(); }

std::string optimize(std::string_view text, const std::string& file,
                     const std::vector<std::string>& pass_names) {
  Graph graph = parse(text, file, find_op);
  for (const std::string& name : pass_names) {
    graph = find_pass(name, DeviceLimits{}.max_storage_bindings).run(graph);
    verify(graph);
  }
  return print(graph);
}

RunResult run(std::string_view text, const std::string& file, const LeafOptions& leaves,
              const DeviceOptions& device) {
  const Graph graph = parsed(text, file);
  check_memory(graph, file, leaves.max_bytes, device.kind == kReference);
  const LeafWords words = leaf_words(graph, leaves);
  RunResult result;
  result.ignored = words.ignored;
  const std::shared_ptr<Device> on = opened(device, result.device);
  const GraphRunOptions options = {.memory_budget = static_cast<std::int64_t>(
                                       std::min(leaves.max_bytes, std::uint64_t{INT64_MAX}))};
  const auto values = on ? run_on_device(graph, words, on, options) : reference_words(graph, words);
  const std::vector<ResultInfo> infos = results_of(graph);
  for (std::size_t r = 0; r < infos.size(); ++r) {
    const Type& type = graph[infos[r].value].type;
    const auto bytes = std::as_bytes(std::span(values[r]));
    result.values.emplace_back(infos[r].name,
                               HostTensor{type.dtype, type.shape, {bytes.begin(), bytes.end()}});
  }
  return result;
}

BisectResult bisect(std::string_view text, const std::string& file, const LeafOptions& leaves,
                    const DeviceOptions& a, const DeviceOptions& b, double tolerance) {
  const Graph graph = parsed(text, file);
  check_memory(graph, file, leaves.max_bytes, a.kind == kReference);
  const LeafWords words = leaf_words(graph, leaves);
  BisectResult result;
  result.ignored = words.ignored;
  tensorgrad::BisectOptions options;
  options.a = opened(a, result.a);
  options.b = opened(b, result.b);
  options.tolerance = tolerance;
  if (!options.b) throw UserError("bisect: b must be a device, not the reference");
  BisectReport report = tensorgrad::bisect(graph, words, options);
  result.checked = std::move(report.checked);
  result.pass = std::move(report.pass);
  result.difference = std::move(report.what);
  result.location = report.location;
  return result;
}

}  // namespace ir
}  // namespace tensorgrad::inline TENSORGRAD_ABI
