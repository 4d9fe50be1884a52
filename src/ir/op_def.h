// SPDX-License-Identifier: MIT
// The record that says all there is to know of a primitive op. An op's identity is its record's
// address. Passes ask for `kind`, never which op it is (fold and simplify may, as algebra).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/node.h"
#include "ir/view.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct PointwiseCode;  // kernel/pointwise.h
class GradContext;     // ops/expr.h
class ExpandContext;   // ops/expr.h

enum class OpKind {
  kLeaf,  // parameter, arena, input, state, scalar, constant: no inputs, has storage or a literal
  kGenerator,    // iota: computed from the index alone
  kPointwise,    // one result element from the input elements at the same index
  kView,         // index arithmetic only
  kReduce,       // sum, max, min, argmax, argmin over attrs "axes"
  kConcat,       // along attr "axis"
  kPack,         // inputs one behind another at attr "offsets" of one flat array
  kGather,       // out[.., i, ..] = x[.., index[.., i, ..], ..] along attr "axis"
  kScatter,      // the adjoint of gather
  kContraction,  // batched matrix product
  kMacro,        // stands for others until the pass `expand`; its gradient and meaning are its own
  kScan,         // each element from all before it along attr "axis" (attr "reverse": behind it)
  kSort,         // the order of the elements along attr "axis"
  kCustom,       // a user's kernel
  kAttention,    // softmax(q k^T) v, or a gradient of it, without its weights in memory
  kSelectiveScan,  // a recurrence per channel and state, or a gradient of it, likewise
};

// A tensor of the reference interpreter: every element
// type as double (32-bit integers fit exactly).
struct RefTensor {
  Type type;
  std::vector<double> data;
};

struct EvalContext {
  const Node& node;
  std::span<const RefTensor* const> inputs;
};

// Ranges from which tests draw the inputs of an op, one per argument.
struct SampleRange {
  double lo = -4, hi = 4;
};
inline constexpr std::size_t kMaxSamples = 4;

// "differentiable" is said in the record: `none` has
// no gradient by its nature (comparisons, argmax).
using InferFn = Type (*)(std::span<const Type> inputs, const Attrs& attrs);
using GradFn = std::vector<ValueId> (*)(GradContext& ctx);
using EvalFn = void (*)(const EvalContext& ctx, RefTensor& out);
using ViewFn = View (*)(const Type& input, const Attrs& attrs);
using ExpandFn = ValueId (*)(ExpandContext& ctx);
using ShortenFn = std::optional<Attrs> (*)(std::span<const Type> inputs, const Attrs& attrs,
                                           std::int64_t needed);

// Records are constant-initialized (constinit), so that models can be compiled while objects of
// namespace scope are initialized.
struct OpDef {
  const char* name;
  OpKind kind;
  int arity;                  // number of inputs; -1: one or more
  InferFn infer;              // type of the result; throws ShapeError or DtypeError
  GradFn grad;                // one gradient per input, kNoValue for none; null: no gradient, or,
                              // with `expand`, that of what it expands to
  EvalFn eval;                // in double, one node at a time; null for leaves
  ViewFn view;                // kView only
  const PointwiseCode* code;  // kPointwise only
  SampleRange samples[kMaxSamples];  // kPointwise only
  bool barrier = false;              // kView: what reads it is not fused with what makes its input
  ExpandFn expand = nullptr;  // kMacro, kAttention, kSelectiveScan: the value of its type, written
                              // with other ops
  // Of a flat result in parts: the attrs under which it lacks the last ones, where the first
  // `needed` elements are in those before; none where they are not. Null: it always has all.
  ShortenFn shorten = nullptr;
};

// The row of an op of any number of operands that has kernels of its own, and is written with other
// ops where these are not wanted.
constexpr OpDef written_otherwise(const char* name, OpKind kind, InferFn infer, GradFn grad,
                                  EvalFn eval, ExpandFn expand) {
  return {.name = name,
          .kind = kind,
          .arity = -1,
          .infer = infer,
          .grad = grad,
          .eval = eval,
          .view = nullptr,
          .code = nullptr,
          .samples = {},
          .expand = expand};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
