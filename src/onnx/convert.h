// SPDX-License-Identifier: MIT
// A traced graph as a model of ONNX, in its standard operators (opset 18).
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

// The elements of a parameter, an arena, a state or a scalar, of their types. They are kept until
// the model is written.
using LeafValues = std::function<std::span<const std::byte>(const Node& leaf)>;

// What a model says of itself.
struct ModelText {
  std::string name, doc;
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// A graph whose updated states are inputs of the model, and outputs named NAME.next.
Graph with_open_states(Graph graph);

// Inputs (and data) and outputs of the graph are the model's, parameters and their like become
// initializers, all under their own names. u32 is computed as INT64, modulo 2^32: few operators
// take UINT32, which is what inputs and outputs are. What has no operator and an `expand` is
// written with other ops first.
//   Throws UserError, with the op and its line: random numbers, a number's bits as another type,
// an op with a user's kernel, a state that the graph changes (unless it went through
// with_open_states()); and, without a line, where two of
// inputs, outputs, parameters and states have one name.
io::OnnxModel to_onnx(const Graph& graph, const ModelText& text, const LeafValues& values);

// One function, traced where the open size of its inputs is `size`.
struct SizedGraph {
  std::int64_t size = 0;
  Graph graph;
  LeafValues values;
};

// The model for any size, which it calls `size_name`: the graphs, at least three, are converted one
// by one. Their models must have the same nodes, whose sizes and other constants may differ. Where
// such a constant is a whole multiple of the size, plus or minus a whole number, for every graph,
// the model computes it from the size; likewise the reciprocal of such a number, and numbers in
// equal steps along an axis of such a length. Of a Reshape one size may be anything.
//   Throws as above; and UserError, with the op and its line, where models differ in anything else.
io::OnnxModel to_onnx(const std::vector<SizedGraph>& graphs, const std::string& size_name,
                      const ModelText& text);

}  // namespace tensorgrad::onnx
