// SPDX-License-Identifier: MIT
// A traced graph as a model of ONNX, in its standard operators (opset 18).
#pragma once

#include <functional>
#include <span>
#include <string>

#include "io/onnx.h"
#include "ir/graph.h"

namespace tensorgrad::onnx {

inline constexpr std::int64_t kOpset = 18, kIrVersion = 8;  // of ONNX 1.13

// The elements of a parameter, an arena, a state or a scalar, four bytes each. They are kept until
// the model is written.
using LeafValues = std::function<std::span<const std::byte>(const Node& leaf)>;

// Inputs (and data) and outputs of the graph are the model's, parameters and their like become
// initializers, all under their own names. u32 is computed as INT64, modulo 2^32: few operators
// take UINT32, which is what inputs and outputs are. What has no operator and an `expand` is
// written with other ops first.
//   Throws UserError, with the op and its line: random numbers, a number's bits as another type,
// an op with a user's kernel, a state that the graph changes; and, without a line, where two of
// inputs, outputs, parameters and states have one name.
io::OnnxModel to_onnx(const Graph& graph, const std::string& name, const std::string& doc,
                      const LeafValues& values);

}  // namespace tensorgrad::onnx
