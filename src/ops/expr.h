// SPDX-License-Identifier: MIT
// Writing IR as formulas: gradients, the optimizer and rewrite rules are made of Ex. Shapes of the
// two sides of a pointwise op must be equal; a plain number takes the other side's shape and dtype.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Where new nodes go, and what they say of their making.
struct Builder {
  Graph& graph;
  SourceLocation location;
  std::string origin;
  std::string name = {};  // what errors say was called; empty: the op
};

// A value in a graph under construction.
struct Ex {
  Builder* builder = nullptr;
  ValueId id = kNoValue;

  [[nodiscard]] Type type() const { return builder->graph[id].type; }
  [[nodiscard]] Shape shape() const { return type().shape; }
  [[nodiscard]] DType dtype() const { return type().dtype; }
  [[nodiscard]] bool present() const { return id != kNoValue; }
};

// An operand of a formula: a value, or a number.
struct Arg {
  Ex value;
  double number = 0;

  Arg(Ex v) : value(v) {}       // NOLINT(google-explicit-constructor)
  Arg(double n) : number(n) {}  // NOLINT(google-explicit-constructor)
  Arg(int n) : number(n) {}     // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool is_number() const { return value.builder == nullptr; }
};

namespace op {

// f16 is a way of storing: ops that move elements about take it as it is, those that compute are
// given f32. Casts the f16 ones of the values to f32; true where all that are real were f16.
bool widen(std::vector<Ex>& values);
bool takes_f16(const OpDef& def);
// The result, rounded to f16 where it is real and `half` (what widen() said).
Ex narrowed(Ex result, bool half);

// Adds a node of any op. Where it computes with f16 operands, they are widened, and a real result
// is rounded to f16 unless a real operand was f32.
Ex apply(Builder& builder, const OpDef& def, const std::vector<Ex>& inputs, Attrs attrs = {});
// Adds a pointwise node; numbers become constants of the shape and dtype of the other operands
// (where(cond, 1, 0) alone gives f32).
Ex apply_pointwise(const OpDef& def, const std::vector<Arg>& args);

// A constant scalar, and one of any shape (a broadcast one).
Ex constant(Builder& builder, double value, DType dtype);
Ex full(Builder& builder, double value, const Type& type);
Ex full_like(Ex x, double value);
// The elements, row-major, as words of four bytes.
Ex literal(Builder& builder, std::vector<std::int64_t> words, const Type& type);
template <class T>
Ex literal(Builder& builder, const std::vector<T>& values, const Type& type) {
  std::vector<std::int64_t> words;
  words.reserve(values.size());
  for (const T value : values) words.push_back(std::bit_cast<std::uint32_t>(value));
  return literal(builder, std::move(words), type);
}

// Counts along `axis` from 0.
Ex iota(Builder& builder, const Shape& shape, int axis, DType dtype);

// Structured ops. Axes count from the front; sizes are given whole.
Ex reshape(Ex x, const Shape& shape);
Ex permute(Ex x, const std::vector<std::int64_t>& axes);
Ex broadcast(Ex x, const Shape& shape);  // right-aligned, axes of size 1 and missing ones grow
Ex slice(Ex x, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& stop);
Ex pad(Ex x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after);
Ex flip(Ex x, const std::vector<std::int64_t>& axes);
Ex sum(Ex x, const std::vector<std::int64_t>& axes);  // drops the axes
// Overlapping windows of an axis: [.., L, ..] -> [.., N, .., size] with N = (L - dilation * (size -
// 1) - 1) / step + 1; element (n, j) reads n * step + j * dilation.
Ex unfold(Ex x, int axis, std::int64_t size, std::int64_t step, std::int64_t dilation = 1);
// The adjoint of unfold: [.., N, .., size] -> [.., length, ..], every element added up where
// unfold had read it.
Ex fold(Ex windows, int axis, std::int64_t length, std::int64_t step, std::int64_t dilation = 1);
// Axis `axis` with `step` - 1 zeros between neighbours.
Ex dilate(Ex x, int axis, std::int64_t step);
Ex concat(const std::vector<Ex>& parts, int axis);
Ex gather(Ex x, Ex index, int axis);
Ex scatter_add(Ex source, Ex index, int axis, std::int64_t size);
Ex matmul(Ex a, Ex b);  // [...,M,K] x [...,K,N], equal batch axes; of integers modulo 2^32
// [M,K] x [K,N] -> [parts,M,N]: part p adds up `depth` steps of K from p * depth on, the last one
// what is left.
Ex matmul_in_parts(Ex a, Ex b, std::int64_t depth);
Ex transpose(Ex x);  // swaps the last two axes
Ex cast(Ex x, DType dtype);
Ex counted_truths(Ex x);  // bool as i32, 0 and 1; others as they are
// The reverse of broadcast: sums x down to `shape`.
Ex sum_to(Ex x, Shape shape);
// Puts back axes of size 1 that a reduction dropped, and broadcasts over them.
Ex expand_reduced(Ex reduced, const std::vector<std::int64_t>& axes, const Shape& shape);

}  // namespace op

Ex operator+(Arg a, Arg b);
Ex operator-(Arg a, Arg b);
Ex operator*(Arg a, Arg b);
Ex operator/(Arg a, Arg b);
Ex operator-(Ex a);

// What a gradient rule is given, and gives: dy is the gradient of the node's value.
class GradContext {
 public:
  GradContext(Builder& b, const Graph& g, ValueId n, ValueId gradient, ValueId rounded = kNoValue)
      : builder(b), graph(g), node(n), dy_id(gradient), half(rounded) {}

  [[nodiscard]] const Node& self() const { return graph[node]; }
  // As it was rounded, if it was: then the value itself need not be kept. PyTorch does the same.
  [[nodiscard]] Ex y() const {
    return half == kNoValue ? Ex{&builder, node} : op::cast({&builder, half}, DType::kF32);
  }
  [[nodiscard]] Ex dy() const { return {&builder, dy_id}; }
  [[nodiscard]] Ex in(std::size_t i) const { return {&builder, self().inputs[i]}; }

  Builder& builder;
  const Graph& graph;  // the same graph that builder appends to: take copies, not references
  ValueId node;
  ValueId dy_id;
  ValueId half;  // the node's value in f16, or kNoValue
};

// What a macro is written anew from: its node, whose inputs are in the graph that is built.
class ExpandContext {
 public:
  ExpandContext(Builder& b, const Node& n) : builder(b), node(n) {}

  [[nodiscard]] Ex in(std::size_t i) const { return {&builder, node.inputs[i]}; }

  Builder& builder;
  const Node& node;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
