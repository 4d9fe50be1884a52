// SPDX-License-Identifier: MIT
// Converts a graph in one pass. Leaves, constants and broadcasts are written when they are first
// needed, since pointwise operators and MatMul broadcast by themselves.
#include "onnx/convert.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "onnx/conversion.h"
#include "onnx/writers.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "passes/decompose.h"
#include "passes/simplify.h"

namespace tensorgrad::onnx {
namespace {

// Replaces slice(concat(..)) by slice(part) if it is within one part. This removes the logsumexp
// that attention computes along with its result. Only for flat tensors: along other axes, the part
// in which a slice lies may depend on a dynamic size.
ValueId slice_of_part(Graph& out, const Node& node) {
  if (node.op != &ops::slice || out[node.inputs[0]].op != &ops::concat) return kNoValue;
  const Node concat = out[node.inputs[0]];
  if (concat.type.shape.size() != 1) return kNoValue;
  const auto axis = static_cast<std::size_t>(concat.attrs.integer("axis"));
  std::vector<std::int64_t> start = node.attrs.list("start"), stop = node.attrs.list("stop");
  for (const ValueId part : concat.inputs) {
    const std::int64_t size = out[part].type.shape[axis];
    if (start[axis] < size) {
      if (stop[axis] > size) return kNoValue;
      Builder builder{out, node.location, node.origin};
      return op::slice({&builder, part}, start, stop).id;
    }
    start[axis] -= size;
    stop[axis] -= size;
  }
  UNREACHABLE("slice past the end");
}

// Expands and simplifies the graph. Excludes the rule that tests for powers of two, since a dynamic
// size may be one.
Graph prepared(const Graph& graph) {
  const auto simpler = [](const Graph& of) { return simplify_without(of, "div_by_power_of_two"); };
  Graph ready = decompose_where(graph, [](const Node& node) { return !is_writable(node); });
  ready = simpler(rewrite_graph(ready, slice_of_part));
  return dce(cse(fold(simpler(fold(dce(ready))))));
}

bool is_mark(const OpDef* op) {
  return op == &ops::barrier || op == &ops::checkpoint || op == &ops::custom_gradient;
}

io::OnnxType outer_type(DType dtype) {
  return dtype == DType::kU32 ? OnnxType::kUint32 : type_of(dtype);
}

// A value, without its broadcasts, as operand of an operator that broadcasts.
struct Loose {
  std::string name;
  Shape shape;
};

// Returns the shape to which all broadcast.
Shape joint_shape(const std::vector<Loose>& values) {
  Shape shape;
  for (const Loose& value : values) {
    if (value.shape.size() > shape.size())
      shape.insert(shape.begin(), value.shape.size() - shape.size(), 1);
    const std::size_t added = shape.size() - value.shape.size();
    for (std::size_t d = 0; d < value.shape.size(); ++d)
      shape[added + d] = std::max(shape[added + d], value.shape[d]);
  }
  return shape;
}

class Conversion {
 public:
  Conversion(const Graph& graph, const LeafValues& values)
      : graph_(prepared(graph)), values_(values), names_(graph_.nodes.size()) {}

  Converted run() {
    refuse_updates();
    reserve_names();
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (is_late(node)) continue;
      names_[static_cast<std::size_t>(id)] = write(node);
      note_maker(id);
    }
    emitter_.set_prefix("");
    for (const GraphOutput& output : graph_.outputs) {
      name_of(output.value);
      note_maker(output.value);
    }
    std::vector<io::OnnxNode>& nodes = emitter_.nodes();
    for (const io::OnnxNode& node : nodes) made_.insert(node.outputs.begin(), node.outputs.end());
    for (const GraphOutput& output : graph_.outputs) {
      write_output(output);
      note_maker(output.value);
    }
    for (io::OnnxNode& node : nodes) {
      for (std::string& name : node.inputs) rename(name);
      for (std::string& name : node.outputs) rename(name);
    }
    return {std::move(graph_), std::move(emitter_), std::move(made_by_)};
  }

 private:
  // True if the node is written when it is first read.
  static bool is_late(const Node& node) {
    return node.op->kind == OpKind::kLeaf || node.op == &ops::iota || node.op == &ops::broadcast;
  }

  void refuse_updates() const {
    for (const GraphUpdate& update : graph_.updates) {
      throw UserError("export_onnx: the state '" + graph_[update.leaf].attrs.text("name") +
                          "' is updated, but an ONNX model keeps no state between runs; set "
                          "OnnxOptions::states to export it as an input and an output",
                      graph_[update.value].location);
    }
  }

  void reserve(const std::string& name, const std::string& what) {
    if (name.empty()) throw UserError("export_onnx: " + what + " has an empty name");
    if (emitter_.reserve(name)) return;
    throw UserError("export_onnx: " + what +
                    " has the name of another input, output, parameter or state");
  }

  // Inputs are part of the model even if they are not read.
  void reserve_names() {
    for (const Node& node : graph_.nodes) {
      if (node.op->kind != OpKind::kLeaf || node.op->eval != nullptr) continue;
      const std::string& name = node.attrs.text("name");
      if (is_input(node)) {
        reserve(name, "the input '" + name + "'");
        emitter_.model.graph.inputs.push_back({name, outer_type(node.type.dtype), node.type.shape});
      } else if (node.op != &ops::scalar) {
        reserve(name, "the parameter or state '" + name + "'");
      }
    }
    for (const GraphOutput& output : graph_.outputs)
      reserve(output.name, "the output '" + output.name + "'");
  }

  // Sets the source of all nodes emitted since the last call.
  void note_maker(ValueId id) { made_by_.resize(emitter_.nodes().size(), id); }

  static bool is_input(const Node& node) { return node.op == &ops::input || node.op == &ops::data; }

  const std::string& name_of(ValueId id) {
    std::string& name = names_[static_cast<std::size_t>(id)];
    if (!name.empty()) return name;
    const Node& node = graph_[id];
    if (node.op->kind == OpKind::kLeaf) {
      name = write_leaf(node);
    } else {
      const Loose part = loose(id);
      name = expanded(part, node.type.shape);
    }
    return name;
  }

  std::string expanded(const Loose& part, const Shape& shape) {
    if (part.shape == shape) return part.name;
    return emitter_.node("Expand", {part.name, emitter_.list(shape)});
  }

  std::string write_leaf(const Node& node) {
    if (node.op == &ops::constant)
      return emitter_.number(node.attrs.number("value"), type_of(node.type.dtype));
    if (node.op == &ops::literal) return write_literal(node);
    const std::string& name = node.attrs.text("name");
    if (is_input(node)) {
      if (node.type.dtype != DType::kU32) return name;
      return emitter_.node("Cast", {name}, {{"to", static_cast<std::int64_t>(OnnxType::kInt64)}});
    }
    if (node.op != &ops::scalar) return write_elements(node, name);
    if (name.starts_with('_')) refuse(node, "random numbers cannot be exported");
    return emitter_.elements(emitter_.fresh(name), node.type, values_(node));
  }

  // f16 is stored as such and cast to f32.
  std::string write_elements(const Node& node, const std::string& name) {
    std::string kept = emitter_.elements(name, node.type, values_(node));
    if (node.type.dtype != DType::kF16) return kept;
    return emitter_.node("Cast", {kept}, {{"to", static_cast<std::int64_t>(OnnxType::kFloat)}});
  }

  std::string write_literal(const Node& node) {
    RefTensor value{node.type, {}};
    node.op->eval({node, {}}, value);
    return emitter_.numbers(value.data, type_of(node.type.dtype), node.type.shape);
  }

  Loose loose(ValueId id) {
    while (graph_[id].op == &ops::broadcast) id = graph_[id].inputs[0];
    const Node& node = graph_[id];
    if (node.op != &ops::iota) return {name_of(id), node.type.shape};
    const auto axis = static_cast<std::size_t>(node.attrs.integer("axis"));
    Shape line(node.type.shape.size(), 1);
    line[axis] = node.type.shape[axis];
    std::vector<double> counts(static_cast<std::size_t>(line[axis]));
    std::iota(counts.begin(), counts.end(), 0);
    return {emitter_.numbers(counts, type_of(node.type.dtype), line), line};
  }

  // Leaves out broadcasts as long as the operands still broadcast to the shape of the result.
  std::vector<std::string> pointwise_operands(const Node& node) {
    std::vector<Loose> parts;
    for (const ValueId id : node.inputs) parts.push_back(loose(id));
    std::vector<std::string> names;
    for (const Loose& part : parts) names.push_back(part.name);
    if (joint_shape(parts) != node.type.shape) names[0] = name_of(node.inputs[0]);
    return names;
  }

  // MatMul broadcasts all axes except the last two.
  std::vector<std::string> product_operands(const Node& node) {
    std::vector<Loose> parts, batches;
    for (const ValueId id : node.inputs) {
      const Shape& whole = graph_[id].type.shape;
      Loose part = loose(id);
      const bool same =
          part.shape.size() >= 2 && std::equal(whole.end() - 2, whole.end(), part.shape.end() - 2);
      if (!same) part = {name_of(id), whole};
      batches.push_back({"", {part.shape.begin(), part.shape.end() - 2}});
      parts.push_back(std::move(part));
    }
    const Shape batch(node.type.shape.begin(), node.type.shape.end() - 2);
    if (joint_shape(batches) != batch) parts[0].name = name_of(node.inputs[0]);
    return {parts[0].name, parts[1].name};
  }

  std::vector<std::string> operands(const Node& node) {
    if (node.op->kind == OpKind::kPointwise) return pointwise_operands(node);
    if (node.op == &ops::matmul) return product_operands(node);
    std::vector<std::string> names;
    for (const ValueId id : node.inputs) {
      const bool narrow = !names.empty() && picks_slices(graph_, node);
      names.push_back(narrow ? name_of(graph_[id].inputs[0]) : name_of(id));
    }
    return names;
  }

  std::string write(const Node& node) {
    if (is_mark(node.op)) return name_of(node.inputs[0]);
    emitter_.set_prefix(node.origin);
    WriteContext ctx(emitter_, graph_, node, operands(node));
    const auto writer = writers().find(node.op);
    CHECK(writer != writers().end(), node.op->name);
    return writer->second(ctx);
  }

  void write_output(const GraphOutput& output) {
    const Type& type = graph_[output.value].type;
    const std::string name = name_of(output.value);
    std::string made = name;
    if (type.dtype == DType::kU32) {
      made = emitter_.node("Cast", {name}, {{"to", static_cast<std::int64_t>(OnnxType::kUint32)}});
    } else if (!made_.contains(name) || renamed_.contains(name)) {
      made = emitter_.node("Identity", {name});
    }
    renamed_[made] = output.name;
    emitter_.model.graph.outputs.push_back({output.name, outer_type(type.dtype), type.shape});
  }

  void rename(std::string& name) const {
    const auto other = renamed_.find(name);
    if (other != renamed_.end()) name = other->second;
  }

  Graph graph_;
  const LeafValues& values_;
  Emitter emitter_;
  std::vector<ValueId> made_by_;                // for each node of the emitter
  std::vector<std::string> names_;              // of values that are written
  std::set<std::string> made_;                  // results of nodes
  std::map<std::string, std::string> renamed_;  // names of the outputs
};

}  // namespace

void refuse(const Node& node, const std::string& reason) {
  std::string called = node.origin.empty() ? node.op->name : node.origin;
  if (node.op == &ops::custom) called = node.attrs.text("name");
  throw UserError("export_onnx: " + called + ": " + reason, node.location);
}

const Writers& writers() {
  static const Writers all = [] {
    Writers made;
    add_pointwise(made);
    add_structured(made);
    add_scans(made);
    return made;
  }();
  return all;
}

Converted convert(const Graph& graph, const LeafValues& values) {
  return Conversion(graph, values).run();
}

io::OnnxModel finished(Emitter emitter, const ModelText& text) {
  io::OnnxModel model = std::move(emitter.model);
  model.producer = "tensorgrad";
  model.version = TENSORGRAD_VERSION_STRING;
  model.ir_version = kIrVersion;
  model.opset = kOpset;
  model.graph.nodes = std::move(emitter.nodes());
  model.metadata = text.metadata;
  model.graph.name = text.name;
  model.graph.doc = text.doc;
  return model;
}

Graph with_open_states(Graph graph) {
  for (const GraphUpdate& update : std::exchange(graph.updates, {})) {
    Node& leaf = graph[update.leaf];
    graph.outputs.push_back({leaf.attrs.text("name") + ".next", update.value});
    leaf.op = &ops::input;
  }
  return graph;
}

io::OnnxModel to_onnx(const Graph& graph, const ModelText& text, const LeafValues& values) {
  return finished(convert(graph, values).emitter, text);
}

}  // namespace tensorgrad::onnx
