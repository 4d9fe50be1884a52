// SPDX-License-Identifier: MIT
// Every op's cases: what the CPU gives, onnxruntime gives too.
#include <bit>
#include <set>

#include "io/onnx.h"
#include "onnx/convert.h"
#include "onnx/onnxruntime.h"
#include "ops/op_cases.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "tensorgrad/error.h"

namespace tensorgrad::testing {
namespace {

// Ops that ONNX has no operators for, and what is said of them.
const std::map<const OpDef*, std::string> kRefused = {
    {&ops::philox, "export_onnx: philox: random numbers cannot be exported"},
    {&ops::bitcast, "export_onnx: bitcast: ONNX has no operator that reads the bits of "},
    {&ops::custom, "export_onnx: ours: an op with a kernel of your own cannot be exported"},
};

// What a NaN does among the operands of these operators, ONNX leaves open.
bool looks_at_nan(const OpCase& each) {
  static const std::set<std::string> names = {};
  return names.contains(each.name);
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

void add_case(OnnxRuntime& runtime, const OpCase& each) {
  Sketch sketch(7);
  sketch.output("y", each.apply(inputs_of(sketch, each)));
  const Graph& graph = sketch.graph();
  const onnx::LeafValues none = [](const Node&) { return std::span<const std::byte>(); };
  try {
    io::write_onnx(runtime.path(each.name), onnx::to_onnx(graph, each.name, "", none));
  } catch (const UserError& error) {
    for (const Node& node : graph.nodes) {
      const auto refused = kRefused.find(node.op);
      if (refused != kRefused.end() && error.message().starts_with(refused->second)) return;
    }
    ADD_FAILURE() << each.name << ": " << error.what();
    return;
  }
  std::map<std::string, HostTensor> inputs;
  for (const Node& node : graph.nodes) {
    if (node.op != &ops::input) continue;
    const std::string& name = node.attrs.text("name");
    inputs[name] = host_tensor(node.type, sketch.leaves.at(name));
  }
  const ValueMap results = run_graph(graph, sketch.leaves, Where::kCpu);
  const Type& type = graph[graph.outputs[0].value].type;
  runtime.expect(each.name, inputs, {{"y", host_tensor(type, results.at("y"))}});
}

TEST(OnnxOps, give_the_same_in_onnxruntime) {
  OnnxRuntime runtime("ops");
  for (const OpCase& each : all_cases()) {
    if (!looks_at_nan(each)) add_case(runtime, each);
  }
  runtime.check();
}

}  // namespace
}  // namespace tensorgrad::testing
