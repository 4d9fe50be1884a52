// SPDX-License-Identifier: MIT
// Converts a traced graph to an ONNX model with standard operators (opset 18).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/onnx.h"
#include "ir/graph.h"

namespace tensorgrad::onnx {

inline constexpr std::int64_t kOpset = 18, kIrVersion = 8;  // of ONNX 1.13

// Returns the elements of a parameter, arena, state or scalar in its type. They must remain valid
// until the model is written.
using LeafValues = std::function<std::span<const std::byte>(const Node& leaf)>;

// Descriptive texts of a model.
struct ModelText {
  std::string name, doc;
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// Returns the graph with its updated states as inputs of the model and as outputs NAME.next.
Graph with_open_states(Graph graph);

// Converts a graph. Inputs, data and outputs keep their names, as do parameters and states, which
// become initializers. u32 is computed as INT64 modulo 2^32, since few operators support UINT32;
// inputs and outputs are UINT32. Ops without an operator are expanded into other ops first.
//
// Throws UserError, with the op and its line, for:
// - random numbers,
// - a bitcast from f32 to an integer type,
// - an op with a user-defined kernel,
// - a state that the graph changes, unless with_open_states() was applied.
//
// Also throws UserError, without a line, if two inputs, outputs, parameters or states have the same
// name.
io::OnnxModel to_onnx(const Graph& graph, const ModelText& text, const LeafValues& values);

// A function traced with `size` as the dynamic size of its inputs.
struct SizedGraph {
  std::int64_t size = 0;
  Graph graph;
  LeafValues values;
};

// Returns a model for any dynamic size, named `size_name`. Converts the graphs, at least three.
// Their models must have the same nodes, but sizes and other constants may differ.
//
// A constant that differs is computed from the size if it is a * size + b with integers a and b for
// every graph, the reciprocal of such a number, or evenly spaced numbers along an axis with such a
// length. In the shape of a Reshape, one size can be arbitrary.
//
// Throws as above, and UserError with the op and its line if models differ in anything else.
io::OnnxModel to_onnx(const std::vector<SizedGraph>& graphs, const std::string& size_name,
                      const ModelText& text);

}  // namespace tensorgrad::onnx
