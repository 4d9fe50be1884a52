// SPDX-License-Identifier: MIT
// All op cases: onnxruntime returns the same as the CPU.
#include <bit>
#include <map>
#include <set>

#include "io/onnx.h"
#include "onnx/convert.h"
#include "ops/op_cases.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "support/onnxruntime.h"
#include "tensorgrad/error.h"

namespace tensorgrad::testing {
namespace {

// Ops without an ONNX operator, and the expected error.
const std::map<const OpDef*, std::string> kRefused = {
    {&ops::philox, ": random numbers cannot be exported"},
    {&ops::bitcast, "export_onnx: bitcast: ONNX has no operator to bitcast "},
    {&ops::sample_tokens, "sample_tokens: ONNX has no operator that samples by top_k and top_p"},
    {&ops::custom, ""},          // errors/export_of_a_custom_op
    {&ops::reduce_scatter, ""},  // is not traced
};

// ONNX does not specify the handling of NaN in comparisons: reductions, pooling, sorting.
const std::set<std::string> kNanAmongOthers = {
    "argmax_ties_and_nan",     "argmin_ties_and_nan", "argmin_ties_and_nan_0",
    "max_ties_and_nan",        "min_ties_and_nan",    "norm_odd",
    "max_pool2d_ties_and_nan", "argsort_odd_up",      "argsort_odd_down",
    "argsort_odd_0_up",        "argsort_odd_0_down",  "sort_odd_up",
    "sort_odd_down",           "topk_odd_up",         "topk_odd_down"};
// models_test.cpp covers these.
const std::set<const OpDef*> kInModels = {&ops::parameter, &ops::state, &ops::scalar,
                                          &ops::checkpoint, &ops::custom_gradient};
// The operator runs its body once per element, for very many elements.
bool is_slow(const OpCase& each) {
  return each.name.starts_with("linear_recurrence_long") || each.name.starts_with("cummax_long");
}

HostTensor host_tensor(const Type& type, const Values& values) {
  HostTensor tensor{type.dtype, type.shape, {}};
  for (const double value : values) {
    std::uint32_t word = 0;
    switch (type.dtype) {
      case DType::kF32: word = std::bit_cast<std::uint32_t>(static_cast<float>(value)); break;
      case DType::kI32: word = static_cast<std::uint32_t>(static_cast<std::int32_t>(value)); break;
      default: word = static_cast<std::uint32_t>(value);
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(&word);
    tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + sizeof word);
  }
  return tensor;
}

const onnx::LeafValues kNone = [](const Node&) { return std::span<const std::byte>(); };

// Exports a case by itself. Fails the test if the export is rejected for an unknown reason.
bool is_exported(const OpCase& each) {
  GraphBuilder builder(7);
  Trace::active()->exported = true;
  builder.output("y", each.apply(inputs_of(builder, each)));
  try {
    onnx::to_onnx(builder.graph(), {each.name, ""}, kNone);
    return true;
  } catch (const UserError& error) {
    for (const Node& node : builder.graph().nodes) {
      const auto refused = kRefused.find(node.op);
      const bool known =
          refused != kRefused.end() && error.message().find(refused->second) != std::string::npos;
      if (known) return false;
    }
    ADD_FAILURE() << each.name << ": " << error.what();
    return false;
  }
}

// Exports cases as one model, with an output for each.
void add_cases(OnnxRuntime& runtime, const std::vector<OpCase>& cases,
               std::set<const OpDef*>& seen) {
  GraphBuilder builder(7);
  Trace::active()->exported = true;
  for (const OpCase& each : cases) builder.output(each.name, each.apply(inputs_of(builder, each)));
  const Graph& graph = builder.graph();
  const std::string model = "from_" + cases.front().name;
  io::write_onnx(runtime.path(model), onnx::to_onnx(graph, {model, ""}, kNone));
  std::map<std::string, HostTensor> inputs, outputs;
  for (const Node& node : graph.nodes) {
    seen.insert(node.op);
    if (node.op != &ops::input) continue;
    const std::string& name = node.attrs.text("name");
    inputs[name] = host_tensor(node.type, builder.leaves.at(name));
  }
  const ValueMap results = run_graph(graph, builder.leaves, Where::kCpu);
  for (const GraphOutput& output : graph.outputs)
    outputs[output.name] = host_tensor(graph[output.value].type, results.at(output.name));
  runtime.expect(model, inputs, outputs);
}

// Covers leaves and ops that only occur in training graphs.
void add_leaves(OnnxRuntime& runtime, std::set<const OpDef*>& seen) {
  GraphBuilder builder(3);
  const Values values = builder.draw.values(f32, 6, -1, 1), counts = {1, 2, 3, 4, 5, 4294967295.0};
  const Tensor arena = builder.leaf(ops::arena, "params", {6}, f32, values);
  const Tensor data = builder.leaf(ops::data, "data", {6}, u32, counts);
  const Tensor sum = arena + cast(data, f32);
  Graph& graph = builder.graph();
  builder.output("y", Trace::active()->tensor(graph.add(ops::barrier, {sum.id()})));
  const HostTensor params = host_tensor({f32, {6}}, values);
  io::write_onnx(runtime.path("leaves"), onnx::to_onnx(graph, {"leaves", ""}, [&](const Node&) {
                   return std::span<const std::byte>(params.bytes);
                 }));
  const ValueMap results = run_graph(graph, builder.leaves, Where::kCpu);
  runtime.expect("leaves", {{"data", host_tensor({u32, {6}}, counts)}},
                 {{"y", host_tensor({f32, {6}}, results.at("y"))}}, {{"params", params}});
  for (const Node& node : graph.nodes) seen.insert(node.op);
}

TEST(OnnxOps, match_onnxruntime) {
  OnnxRuntime runtime("ops");
  std::set<const OpDef*> seen;
  std::vector<OpCase> cases;
  for (const OpCase& each : all_cases()) {
    if (kNanAmongOthers.contains(each.name) || is_slow(each) || !is_exported(each)) continue;
    cases.push_back(each);
    if (cases.size() < 50) continue;
    add_cases(runtime, cases, seen);
    cases.clear();
  }
  if (!cases.empty()) add_cases(runtime, cases, seen);
  add_leaves(runtime, seen);
  runtime.check();
  for (const OpDef* op : all_ops()) {
    if (kRefused.contains(op) || kInModels.contains(op)) continue;
    EXPECT_TRUE(seen.contains(op)) << op->name << " has no case that is exported";
  }
}

}  // namespace
}  // namespace tensorgrad::testing
