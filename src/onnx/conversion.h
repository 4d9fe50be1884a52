// SPDX-License-Identifier: MIT
// A graph converted to ONNX operators, with the source node of each operator. Models for several
// sizes are compared by these.
#pragma once

#include "onnx/convert.h"
#include "onnx/emitter.h"

namespace tensorgrad::onnx {

struct Converted {
  Graph graph;                   // as converted: expanded and simplified
  Emitter emitter;               // already has the inputs, outputs and initializers of the model
  std::vector<ValueId> made_by;  // for each node of the emitter
};
Converted convert(const Graph& graph, const LeafValues& values);

// Completes the model with its nodes and texts.
io::OnnxModel finished(Emitter emitter, const ModelText& text);

}  // namespace tensorgrad::onnx
