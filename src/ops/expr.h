// SPDX-License-Identifier: MIT
// Builds IR from expressions. Gradients, the optimizer and rewrite rules are written with Expr. The
// operands of a pointwise op must have equal shapes; a number takes the shape and dtype of the
// other operand.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Destination of new nodes, and their location and origin.
struct Builder {
  Graph& graph;
  SourceLocation location;
  std::string origin;
  std::string name = {};  // name of the called function in errors; empty: the op
};

// A value in a graph under construction.
struct Expr {
  Builder* builder = nullptr;
  ValueId id = kNoValue;

  [[nodiscard]] Type type() const { return builder->graph[id].type; }
  [[nodiscard]] Shape shape() const { return type().shape; }
  [[nodiscard]] DType dtype() const { return type().dtype; }
  [[nodiscard]] bool present() const { return id != kNoValue; }
};

// An operand of an expression: a value or a number.
struct Arg {
  Expr value;
  double number = 0;

  Arg(Expr v) : value(v) {}     // NOLINT(google-explicit-constructor)
  Arg(double n) : number(n) {}  // NOLINT(google-explicit-constructor)
  Arg(int n) : number(n) {}     // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool is_number() const { return value.builder == nullptr; }
};

namespace op {

// f16 is a storage format: ops that move elements accept it, ops that compute take f32. Casts f16
// values to f32. Returns true if there are some and no value is f32.
bool upcast(std::vector<Expr>& values);
bool takes_f16(const OpDef& def);
// Rounds an f32 result to f16 if `half`, the result of upcast(), is set.
Expr downcast(Expr result, bool half);

// Adds a node. If the op does not support f16, casts f16 operands to f32, and rounds an f32 result
// to f16 unless an operand was f32.
Expr apply(Builder& builder, const OpDef& def, const std::vector<Expr>& inputs, Attrs attrs = {});
// Adds a pointwise node. Numbers become constants with the shape and dtype of the other operands;
// in where(cond, 1, 0) they are f32.
Expr apply_pointwise(const OpDef& def, const std::vector<Arg>& args);

// Return a constant scalar, and a broadcast constant of any shape.
Expr constant(Builder& builder, double value, DType dtype);
Expr full(Builder& builder, double value, const Type& type);
Expr full_like(Expr x, double value);
// Returns a literal. Elements are row-major 32-bit words.
Expr literal(Builder& builder, std::vector<std::int64_t> words, const Type& type);
template <class T>
Expr literal(Builder& builder, const std::vector<T>& values, const Type& type) {
  std::vector<std::int64_t> words;
  words.reserve(values.size());
  for (const T value : values) words.push_back(std::bit_cast<std::uint32_t>(value));
  return literal(builder, std::move(words), type);
}

// Counts from 0 along `axis`.
Expr iota(Builder& builder, const Shape& shape, int axis, DType dtype);

// Structured ops. Axes count from the front; sizes must be explicit.
Expr reshape(Expr x, const Shape& shape);
Expr permute(Expr x, const std::vector<std::int64_t>& axes);
Expr broadcast(Expr x,
               const Shape& shape);  // right-aligned; expands missing axes and axes of size 1
Expr slice(Expr x, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& stop);
Expr pad(Expr x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after);
Expr flip(Expr x, const std::vector<std::int64_t>& axes);
Expr sum(Expr x, const std::vector<std::int64_t>& axes);  // drops the axes
// Returns overlapping windows along an axis: [.., L, ..] -> [.., N, .., size]. Element (n, j) reads
// n * step + j * dilation, and
//   N = (L - dilation * (size - 1) - 1) / step + 1.
Expr unfold(Expr x, int axis, std::int64_t size, std::int64_t step, std::int64_t dilation = 1);
// Adjoint of unfold: [.., N, .., size] -> [.., length, ..]. Adds each element to the position that
// unfold reads.
Expr fold(Expr windows, int axis, std::int64_t length, std::int64_t step,
          std::int64_t dilation = 1);
// Inserts `step` - 1 zeros between adjacent elements of an axis.
Expr dilate(Expr x, int axis, std::int64_t step);
Expr concat(const std::vector<Expr>& parts, int axis);
Expr gather(Expr x, Expr index, int axis);
Expr scatter_add(Expr source, Expr index, int axis, std::int64_t size);
Expr index_update(Expr x, Expr update, Expr start, int axis);  // start: i32, see infer_index_update
Expr matmul(Expr a, Expr b);  // [...,M,K] x [...,K,N], equal batch axes; integers wrap modulo 2^32
// Split-K product: [M,K] x [K,N] -> [parts,M,N]. Part p sums `depth` elements of K from p * depth
// on; the last part may have fewer.
Expr matmul_in_parts(Expr a, Expr b, std::int64_t depth);
Expr transpose(Expr x);  // swaps the last two axes
Expr cast(Expr x, DType dtype);
Expr bools_to_i32(Expr x);  // converts bool to i32; others are unchanged
// Inverse of broadcast: sums x to `shape`.
Expr sum_to(Expr x, Shape shape);
// Restores reduced axes with size 1 and broadcasts along them.
Expr expand_reduced(Expr reduced, const std::vector<std::int64_t>& axes, const Shape& shape);

}  // namespace op

Expr operator+(Arg a, Arg b);
Expr operator-(Arg a, Arg b);
Expr operator*(Arg a, Arg b);
Expr operator/(Arg a, Arg b);
Expr operator-(Expr a);

// Arguments of a gradient rule. dy is the gradient of the node's value.
class GradContext {
 public:
  GradContext(Builder& b, const Graph& g, ValueId n, ValueId gradient, ValueId rounded = kNoValue)
      : builder(b), graph(g), node(n), dy_id(gradient), half(rounded) {}

  [[nodiscard]] const Node& self() const { return graph[node]; }
  // Returns the node's value, in its version rounded to f16 if there is one, so that the f32 value
  // need not be kept. PyTorch does the same.
  [[nodiscard]] Expr y() const {
    return half == kNoValue ? Expr{&builder, node} : op::cast({&builder, half}, DType::kF32);
  }
  [[nodiscard]] Expr dy() const { return {&builder, dy_id}; }
  [[nodiscard]] Expr in(std::size_t i) const { return {&builder, self().inputs[i]}; }

  Builder& builder;
  const Graph& graph;  // the graph that builder appends to: copy nodes, do not hold references
  ValueId node;
  ValueId dy_id;
  ValueId half;  // the node's value in f16, or kNoValue
};

// Arguments of a decomposition: the node, whose inputs are in the graph being built.
class ExpandContext {
 public:
  ExpandContext(Builder& b, const Node& n) : builder(b), node(n) {}

  [[nodiscard]] Expr in(std::size_t i) const { return {&builder, node.inputs[i]}; }

  Builder& builder;
  const Node& node;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
