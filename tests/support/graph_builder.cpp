// SPDX-License-Identifier: MIT
#include "support/graph_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <set>

#include "backend/reference/interpreter.h"
#include "compile/runtime/element_codec.h"
#include "compile/runtime/instance.h"
#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

bool in_arena(const Node& leaf) { return leaf.op == &ops::parameter || leaf.op == &ops::arena; }

std::string buffer_of(const Node& leaf) {
  if (in_arena(leaf)) return "params";
  const std::string& name = leaf.attrs.text("name");
  if (leaf.op == &ops::state) return state_buffer(name);
  return leaf.op == &ops::data ? data_buffer(name) : input_buffer(name);
}

std::int64_t offset_of(const Node& leaf) {
  return in_arena(leaf) ? leaf.attrs.integer("offset") : 0;
}

std::string update_name(const Graph& graph, const GraphUpdate& update) {
  return "update " + graph[update.leaf].attrs.text("name");
}

Values read_back(Instance& instance, const std::string& buffer, std::int64_t offset,
                 const Type& type) {
  const auto count = static_cast<std::size_t>(numel(type.shape));
  const DType stored = dtype_in_memory(type.dtype, instance.device().info().stores_f16);
  std::vector<std::byte> bytes(stored_bytes(count, stored));
  instance.download(buffer, offset * 4, bytes);
  Values values;
  for (const std::uint32_t word : from_stored(bytes, count, stored))
    values.push_back(decode_element(word, type.dtype));
  return values;
}

// Writes the leaves and returns the runtime scalars.
ScalarValues give_leaves(Instance& instance, const Graph& graph, const ValueMap& leaves) {
  ScalarValues scalars;
  for (const Node& node : graph.nodes) {
    if (node.op->kind != OpKind::kLeaf || node.op->eval != nullptr) continue;
    const std::string& name = node.attrs.text("name");
    std::vector<std::uint32_t> words;
    for (const double value : leaves.at(name))
      words.push_back(encode_element(value, node.type.dtype));
    if (node.op == &ops::scalar) {
      scalars[name] = words.at(0);
      continue;
    }
    const std::string buffer = buffer_of(node);
    if (!instance.has_buffer(buffer)) continue;
    const DType stored = dtype_in_memory(node.type.dtype, instance.device().info().stores_f16);
    instance.upload(buffer, offset_of(node) * 4, to_stored(words, stored));
  }
  return scalars;
}

std::int64_t arena_elements(const Graph& graph) {
  std::int64_t end = 0;
  for (const Node& node : graph.nodes) {
    if (in_arena(node)) end = std::max(end, offset_of(node) + numel(node.type.shape));
  }
  return end;
}

}  // namespace

std::string to_string(Where where) {
  return where == Where::kCpu      ? "cpu"
         : where == Where::kWebGpu ? "webgpu"
                                   : "webgpu default limits";
}

std::shared_ptr<Device> device_at(Where where) {
  static std::map<Where, std::shared_ptr<Device>> open;
  std::shared_ptr<Device>& device = open[where];
  if (!device) {
    DeviceOptions options;
    options.kind = where == Where::kCpu ? "cpu" : "webgpu";
    options.allow_software = true;
    options.default_limits = where == Where::kWebGpuDefaultLimits;
    std::string reason;
    device = open_device(options, reason);
  }
  return device;
}

namespace {

// An empty value removes the variable on Windows.
void set_env(const std::string& name, const std::string& value) {
#ifdef _WIN32
  ::_putenv_s(name.c_str(), value.c_str());
#else
  ::setenv(name.c_str(), value.c_str(), 1);
#endif
}

}  // namespace

ScopedEnv::ScopedEnv(const std::string& name, const std::string& value) : name_(name) {
  const char* old = std::getenv(name.c_str());
  had_ = old != nullptr;
  if (had_) old_ = old;
  set_env(name, value);
}

ScopedEnv::~ScopedEnv() {
  if (had_) {
    set_env(name_, old_);
  } else {
#ifdef _WIN32
    set_env(name_, "");
#else
    ::unsetenv(name_.c_str());
#endif
  }
}

std::int64_t Draw::whole(std::int64_t lo, std::int64_t hi) {
  return lo + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(hi - lo + 1));
}

Values Draw::values(DType dtype, std::int64_t count, double lo, double hi) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) {
    if (dtype == DType::kF32 || dtype == DType::kF16) {
      values.push_back(decode_element(encode_element(real(lo, hi), dtype), dtype));
    } else if (dtype == DType::kBool) {
      values.push_back(chance(0.5) ? 1 : 0);
    } else {
      const double least = dtype == DType::kU32 ? std::max(lo, 0.0) : lo;
      values.push_back(static_cast<double>(
          whole(static_cast<std::int64_t>(std::ceil(least)), static_cast<std::int64_t>(hi))));
    }
  }
  return values;
}

ValueMap interpret_graph(const Graph& graph, const ValueMap& leaves, bool round_to_float) {
  InterpretOptions options;
  options.round_to_float = round_to_float;
  options.leaf = [&](const Node& node) { return leaves.at(node.attrs.text("name")); };
  const std::vector<RefTensor> values = interpret(graph, options);
  ValueMap result;
  for (const GraphOutput& output : graph.outputs) {
    result[output.name] = values[static_cast<std::size_t>(output.value)].data;
  }
  for (const GraphUpdate& update : graph.updates) {
    result[update_name(graph, update)] = values[static_cast<std::size_t>(update.value)].data;
  }
  return result;
}

Compiled compile_for_test(const Graph& graph, int max_bindings, std::int64_t max_binding_bytes,
                          bool stores_f16, int join_bindings, int row_columns) {
  CompileRequest request;
  request.name = "test";
  request.graph = graph;
  request.fusing.max_bindings = request.plan.max_bindings = max_bindings;
  request.plan.max_binding_bytes = max_binding_bytes;
  request.plan.stores_f16 = stores_f16;
  request.plan.join_bindings = join_bindings;
  request.plan.fused_sequences = join_bindings > 0 && row_columns > 0;
  request.fusing.row_epilogue_columns = row_columns;
  request.fusing.row_operands = request.fusing.concat_operands = row_columns > 0;
  request.plan.params_elements = arena_elements(graph);
  return compile_graph(std::move(request));
}

ValueMap run_graph(const Graph& graph, const ValueMap& leaves, Where where, int max_bindings,
                   std::int64_t max_binding_bytes, bool join) {
  const std::shared_ptr<Device> device = device_at(where);
  if (max_bindings == 0) max_bindings = device->info().limits.max_storage_bindings;
  const DeviceInfo& info = device->info();
  CompileRequest usual;
  compile_for(info, usual);
  Instance instance(device,
                    compile_for_test(graph, max_bindings, max_binding_bytes, info.stores_f16,
                                     join && info.joins_launches ? max_bindings : 0,
                                     usual.fusing.row_epilogue_columns)
                        .program);
  const ScalarValues scalars = give_leaves(instance, graph, leaves);
  instance.wait(instance.run({&scalars, 1}));
  ValueMap result;
  for (const GraphOutput& output : graph.outputs) {
    result[output.name] =
        read_back(instance, output_buffer(output.name), 0, graph[output.value].type);
  }
  for (const GraphUpdate& update : graph.updates) {
    const Node& leaf = graph[update.leaf];
    const std::string buffer = buffer_of(leaf);
    result[update_name(graph, update)] = read_back(instance, buffer, offset_of(leaf), leaf.type);
  }
  return result;
}

Type type_of(const Graph& graph, const std::string& name) {
  for (const GraphOutput& output : graph.outputs) {
    if (output.name == name) return graph[output.value].type;
  }
  for (const GraphUpdate& update : graph.updates) {
    if (update_name(graph, update) == name) return graph[update.value].type;
  }
  ADD_FAILURE() << "no output " << name;
  return {};
}

void expect_close(const Graph& graph, const ValueMap& got, const ValueMap& want, double tolerance,
                  const std::string& note) {
  ASSERT_EQ(got.size(), want.size()) << note;
  for (const auto& [name, expected] : want) {
    const Type type = type_of(graph, name);
    const Values& given = got.at(name);
    ASSERT_EQ(given.size(), expected.size()) << name << ": " << note;
    int shown = 0;
    for (std::size_t i = 0; i < expected.size() && shown < 3; ++i) {
      const double a = given[i], b = expected[i];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const bool real =
          register_dtype(type.dtype) == DType::kF32 && std::isfinite(a) && std::isfinite(b);
      if (real && std::abs(a - b) <= tolerance * (1 + std::abs(b))) continue;
      ADD_FAILURE() << name << " " << tensorgrad::to_string(type) << ": element " << i << " is "
                    << a << ", should be " << b << "\n"
                    << (shown == 0 ? note : "");
      ++shown;
    }
  }
}

Tensor GraphBuilder::leaf(const OpDef& op, const std::string& name, const Shape& shape, DType dtype,
                          const Values& values, std::int64_t offset) {
  Attrs attrs = {{"name", name}, {"dtype", static_cast<std::int64_t>(dtype)}};
  if (&op != &ops::scalar) attrs.set("shape", shape);
  if (&op == &ops::parameter || &op == &ops::arena) attrs.set("offset", offset);
  if (&op == &ops::state) attrs.set("init", 0.0);
  leaves[name] = values;
  return trace_.tensor(trace_.graph.add(op, {}, attrs));
}

Tensor GraphBuilder::input(const Shape& shape, DType dtype, const Values& values) {
  return leaf(ops::input, "in" + std::to_string(count_++), shape, dtype, values);
}

Tensor GraphBuilder::input(const Shape& shape, double lo, double hi, DType dtype) {
  return input(shape, dtype, draw.values(dtype, numel(shape), lo, hi));
}

Tensor GraphBuilder::boolean(const Shape& shape) { return ne(input(shape, 0, 1, i32), 0); }

void GraphBuilder::output(const std::string& name, const Tensor& value) {
  trace_.graph.outputs.push_back({name, trace_.value(value, "output", {})});
}

void GraphBuilder::check(Where where, double tolerance, bool round_to_float) {
  expect_close(graph(), run_graph(graph(), leaves, where),
               interpret_graph(graph(), leaves, round_to_float), tolerance,
               "at " + to_string(where));
}

}  // namespace tensorgrad::testing
