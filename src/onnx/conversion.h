// SPDX-License-Identifier: MIT
// A graph written with operators, with the node that each is a part of: what models for several
// sizes are compared by.
#pragma once

#include "onnx/convert.h"
#include "onnx/emitter.h"

namespace tensorgrad::onnx {

struct Converted {
  Graph graph;                   // as it was written: expanded and simplified
  Emitter emitter;               // inputs, outputs and initializers are its model's already
  std::vector<ValueId> made_by;  // for each of the emitter's nodes
};
Converted convert(const Graph& graph, const LeafValues& values);

// The model, with its nodes and what is said of it.
io::OnnxModel finished(Emitter emitter, const ModelText& text);

}  // namespace tensorgrad::onnx
