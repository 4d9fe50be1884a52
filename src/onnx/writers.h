// SPDX-License-Identifier: MIT
// How each op is written with operators of ONNX.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "onnx/emitter.h"

namespace tensorgrad::onnx {

// One node of the graph, whose operands have names already.
class WriteContext {
 public:
  WriteContext(Emitter& out, const Graph& of, const Node& self, std::vector<std::string> operands)
      : emitter(out), graph(of), node(self), operands_(std::move(operands)) {}

  [[nodiscard]] const std::string& in(std::size_t i) const { return operands_[i]; }
  [[nodiscard]] const std::vector<std::string>& all() const { return operands_; }
  // Of the operands, and of the result.
  [[nodiscard]] const Type& type(std::size_t i = 0) const { return graph[node.inputs[i]].type; }
  [[nodiscard]] DType dtype(std::size_t i = 0) const { return type(i).dtype; }

  std::string op(const char* name, std::vector<std::string> inputs,
                 io::OnnxAttributes attributes = {}) {
    return emitter.node(name, std::move(inputs), std::move(attributes));
  }
  // A number of the type that operand i is computed as.
  std::string number(double value, std::size_t i = 0) {
    return emitter.number(value, type_of(dtype(i)));
  }
  std::string wide(double value) { return emitter.number(value, OnnxType::kInt64); }
  std::string cast(const std::string& x, OnnxType to) {
    return op("Cast", {x}, {{"to", static_cast<std::int64_t>(to)}});
  }
  // INT64, of any size, to what an integer type of 32 bits keeps of it.
  std::string wrapped(const std::string& x, DType to);
  // Of i32 or u32, as INT64.
  std::string widened(std::size_t i) {
    return dtype(i) == DType::kI32 ? cast(in(i), OnnxType::kInt64) : in(i);
  }

  Emitter& emitter;
  const Graph& graph;
  const Node& node;

 private:
  std::vector<std::string> operands_;
};

// Throws UserError with the node's line, and what was called there.
[[noreturn]] void refuse(const Node& node, const std::string& why);

// An op is one operator on the same operands, or what a function makes of them; it gives the
// result's name.
class Writer {
 public:
  Writer(const char* name) : name_(name) {}                           // NOLINT
  Writer(std::string (*write)(WriteContext& ctx)) : write_(write) {}  // NOLINT
  std::string operator()(WriteContext& ctx) const {
    return name_ != nullptr ? ctx.op(name_, ctx.all()) : write_(ctx);
  }

 private:
  const char* name_ = nullptr;
  std::string (*write_)(WriteContext& ctx) = nullptr;
};
using Writers = std::unordered_map<const OpDef*, Writer>;

void add_pointwise(Writers& writers);
void add_structured(Writers& writers);
void add_scans(Writers& writers);

// Of all ops but leaves, iota, broadcasts and marks, which the graph's conversion knows itself, and
// of macros that must be expanded.
const Writers& writers();
// Of a gather: its index is a broadcast of one number for each slice, which the writer is given
// instead, as with the rows of an embedding.
bool picks_slices(const Graph& graph, const Node& gather);
// False for a macro that has no writer, or none for these attributes.
bool is_writable(const Node& node);

}  // namespace tensorgrad::onnx
