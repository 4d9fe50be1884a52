// SPDX-License-Identifier: MIT
// How ops are written with ONNX operators.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "onnx/emitter.h"

namespace tensorgrad::onnx {

// A node of the graph and the names of its operands.
class WriteContext {
 public:
  WriteContext(Emitter& out, const Graph& of, const Node& self, std::vector<std::string> operands)
      : emitter(out), graph(of), node(self), operands_(std::move(operands)) {}

  [[nodiscard]] const std::string& in(std::size_t i) const { return operands_[i]; }
  [[nodiscard]] const std::vector<std::string>& all() const { return operands_; }
  // Types of the operands.
  [[nodiscard]] const Type& type(std::size_t i = 0) const { return graph[node.inputs[i]].type; }
  [[nodiscard]] DType dtype(std::size_t i = 0) const { return type(i).dtype; }

  std::string op(const char* name, std::vector<std::string> inputs,
                 io::OnnxAttributes attributes = {}) {
    return emitter.node(name, std::move(inputs), std::move(attributes));
  }
  // Adds a number of the type in which operand i is computed.
  std::string number(double value, std::size_t i = 0) {
    return emitter.number(value, type_of(dtype(i)));
  }
  std::string wide(double value) { return emitter.number(value, OnnxType::kInt64); }
  std::string cast(const std::string& x, OnnxType to) {
    return op("Cast", {x}, {{"to", static_cast<std::int64_t>(to)}});
  }
  // Wraps an INT64 to a 32-bit integer type.
  std::string wrapped(const std::string& x, DType to);
  // Returns an i32 or u32 operand as INT64.
  std::string widened(std::size_t i) {
    return dtype(i) == DType::kI32 ? cast(in(i), OnnxType::kInt64) : in(i);
  }

  Emitter& emitter;
  const Graph& graph;
  const Node& node;

 private:
  std::vector<std::string> operands_;
};

// Throws UserError with the called op and its line.
[[noreturn]] void refuse(const Node& node, const std::string& reason);

// Writes an op, either as a single operator on the same operands or with a function. Returns the
// name of the result.
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

// Returns the writers of all ops except leaves, iota, broadcasts and annotations, which the
// conversion handles itself, and macros that must be expanded.
const Writers& writers();
// True if the index of a gather is a broadcast of one number for each slice, as for the rows of an
// embedding. The writer then gets these numbers instead.
bool picks_slices(const Graph& graph, const Node& gather);
// False for a composite op without a writer, or without one for these attributes.
bool is_writable(const Node& node);

}  // namespace tensorgrad::onnx
