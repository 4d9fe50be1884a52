// SPDX-License-Identifier: MIT
// The definition of a primitive op. The address of its OpDef identifies an op. Passes dispatch on
// `kind`; only where an op's own semantics matter, as in fold and simplify, do they compare ops.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/node.h"
#include "ir/view.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct OpaqueKernel;   // kernel/opaque_kernel.h
struct PointwiseCode;  // kernel/pointwise.h
class GradContext;     // ops/expr.h
class ExpandContext;   // ops/expr.h

enum class OpKind {
  kLeaf,  // parameter, arena, input, state, scalar, constant: no inputs; has storage or a literal
  kGenerator,    // iota: computed from the index
  kPointwise,    // each result element from the input elements at the same index
  kView,         // index arithmetic only
  kReduce,       // sum, max, min, argmax, argmin over attr "axes"
  kConcat,       // along attr "axis"
  kPack,         // inputs at attr "offsets" of one flat array
  kGather,       // out[.., i, ..] = x[.., index[.., i, ..], ..] along attr "axis"
  kScatter,      // the adjoint of gather
  kIndexUpdate,  // operand 0 with a slice along attr "axis" replaced, in place if possible
  kContraction,  // batched matrix product
  kComposite,    // replaced by other ops in the pass `expand`; has its own gradient and evaluation
  kScan,    // each element from those before it along attr "axis" (with attr "reverse": after it)
  kSort,    // the order of the elements along attr "axis"
  kOpaque,  // a kernel written by hand: attention, selective scans, kernels of users
};

// A tensor of the reference interpreter. Elements of every type are stored as double, which
// represents 32-bit integers exactly.
struct RefTensor {
  Type type;
  std::vector<double> data;
};

struct EvalContext {
  const Node& node;
  std::span<const RefTensor* const> inputs;
};

// Range from which tests draw an input of an op; one per argument.
struct SampleRange {
  double lo = -4, hi = 4;
};
inline constexpr std::size_t kMaxSamples = 4;

using InferFn = Type (*)(std::span<const Type> inputs, const Attrs& attrs);
using GradFn = std::vector<ValueId> (*)(GradContext& ctx);
using EvalFn = void (*)(const EvalContext& ctx, RefTensor& out);
using ViewFn = View (*)(const Type& input, const Attrs& attrs);
using ExpandFn = ValueId (*)(ExpandContext& ctx);
using OpaqueFn = std::shared_ptr<const OpaqueKernel> (*)(std::span<const Type> inputs,
                                                         const Attrs& attrs);
using ShortenFn = std::optional<Attrs> (*)(std::span<const Type> inputs, const Attrs& attrs,
                                           std::int64_t needed);

// OpDefs are constant-initialized (constinit), so that models can be compiled during the
// initialization of namespace-scope objects.
struct OpDef {
  const char* name;
  OpKind kind;
  int arity;              // number of inputs; -1: one or more
  InferFn infer;          // returns the type of the result; throws ShapeError or DtypeError
  GradFn grad;            // returns one gradient per input, kNoValue for none. Null: no gradient
                          // (comparisons, argmax) or, with `expand`, that of the decomposition
  EvalFn eval;            // evaluates one node in double; null for leaves
  ViewFn view = nullptr;  // kView only
  const PointwiseCode* code = nullptr;  // kPointwise only
  SampleRange samples[kMaxSamples];     // kPointwise only
  bool barrier = false;                 // kView: readers are not fused with what computes its input
  // kComposite, kOpaque, kIndexUpdate: builds the decomposition and returns its value.
  ExpandFn expand = nullptr;
  // For a flat result of several parts: returns the attrs with which the last parts are omitted, if
  // the first `needed` elements do not include them, else nullopt. Null: all parts are always
  // computed.
  ShortenFn shorten = nullptr;
  OpaqueFn opaque = nullptr;  // kOpaque: returns the kernel
  // kOpaque: number of the kernel's result that the op returns; -1: all of them, in one flat value.
  // Ops of one kernel with equal operands and attributes share a launch.
  int only_result = -1;
};

constexpr OpDef make_op(const char* name, OpKind kind, int arity, InferFn infer, GradFn grad,
                        EvalFn eval, ExpandFn expand = nullptr) {
  return {.name = name,
          .kind = kind,
          .arity = arity,
          .infer = infer,
          .grad = grad,
          .eval = eval,
          .samples = {},
          .expand = expand};
}

constexpr OpDef make_view_op(const char* name, int arity, InferFn infer, GradFn grad, EvalFn eval,
                             ViewFn view, bool barrier = false) {
  OpDef op = make_op(name, OpKind::kView, arity, infer, grad, eval);
  op.view = view;
  op.barrier = barrier;
  return op;
}

constexpr OpDef make_composite_op(const char* name, int arity, InferFn infer, GradFn grad,
                                  EvalFn eval, ExpandFn expand) {
  return make_op(name, OpKind::kComposite, arity, infer, grad, eval, expand);
}

// Returns the OpDef of an op that has a kernel written by hand, and a decomposition to use instead.
constexpr OpDef make_opaque_op(const char* name, int arity, OpaqueFn opaque, InferFn infer,
                               GradFn grad, EvalFn eval, ExpandFn expand) {
  OpDef op = make_op(name, OpKind::kOpaque, arity, infer, grad, eval, expand);
  op.opaque = opaque;
  return op;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
