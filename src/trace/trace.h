// SPDX-License-Identifier: MIT
// The graph to which ops are appended. Each thread has at most one at a time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/expr.h"
#include "tensorgrad/nn/module.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

using Scalars = std::map<std::string, double>;
using PerUpdate = std::function<double(std::int64_t update, const Scalars& scalars)>;

class Trace {
 public:
  Trace();

  Graph graph;
  std::map<const Parameter*, ValueId> parameters;  // of the traced model
  std::map<const Buffer*, std::string> buffers;    // names of the states of the model's buffers
  bool training = true;                            // see is_training()
  bool autocast = false;                           // see Autocast
  bool exported = false;                           // for a target that cannot read the bits of f32
  bool any_size = false;                           // stands for traces of all dynamic sizes
  Scalars scalars;                                 // runtime scalars with their initial values
  std::map<std::string, ValueId> captures;
  std::vector<std::string> printed;  // captures shown by print()
  // Runtime scalars that the host computes from the number of the update (from 1) and other
  // scalars.
  std::map<std::string, PerUpdate> per_update;
  bool counts_updates = false;  // some of them depend on the number of the update
  std::map<std::string, double>
      scalar_limits;             // upper bounds of the optimizer's adjustable scalars
  std::uint32_t random_ops = 0;  // number of random ops so far; the stream of the next

  // Returns the trace of this thread. Throws UserError, naming the op, if there is none.
  static Trace& current(std::string_view op, const SourceLocation& location);
  static Trace* active();

  [[nodiscard]] Tensor tensor(ValueId id) { return {this, serial_, id}; }
  [[nodiscard]] Tensor tensor(const Expr& x) { return tensor(x.id); }
  // Returns the value of a tensor. Throws UserError if the tensor belongs to another trace.
  ValueId value(const Tensor& tensor, std::string_view op, const SourceLocation& location) const;
  // Returns the runtime scalar of that name. Creates it on first use.
  ValueId scalar(const std::string& name, DType dtype, double initial,
                 const SourceLocation& location);

  // The composite that new nodes belong to, set by the outermost Composite.
  SourceLocation composite_location;
  std::string composite;

 private:
  friend class TraceScope;
  std::uint64_t serial_;
};

// Makes a trace the current one of this thread. Throws UserError if one is active.
class TraceScope {
 public:
  explicit TraceScope(Trace& trace);
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
  ~TraceScope();
};

// Assigns nodes created in its scope to the composite `name`, called at `location`. Has no effect
// inside another composite.
class Composite {
 public:
  Composite(const char* name, const SourceLocation& location);
  Composite(const Composite&) = delete;
  Composite& operator=(const Composite&) = delete;
  ~Composite();

 private:
  Trace& trace_;
  bool outermost_;
};

// Context for building the nodes of an op: its trace and the location and name for new nodes.
// Inside a composite, these are the composite's.
struct OpContext {
  OpContext(std::string_view op, const SourceLocation& location)
      : trace(Trace::current(op, location)),
        builder{trace.graph, trace.composite.empty() ? location : trace.composite_location,
                trace.composite, trace.composite.empty() ? std::string(op) : trace.composite} {}

  Expr in(const Tensor& tensor) {
    return {&builder, trace.value(tensor, name(), builder.location)};
  }
  Tensor out(const Expr& x) { return trace.tensor(x); }

  // Returns the name of the op or composite that the user called.
  [[nodiscard]] const std::string& name() const { return builder.name; }
  [[nodiscard]] const SourceLocation& location() const { return builder.location; }

  Trace& trace;
  Builder builder;
};

// Throws DtypeError if `value` is not representable in `dtype`.
void check_number(const OpContext& ctx, double value, DType dtype);

// Returns the axes as non-negative, sorted and unique numbers. An empty list means all axes. Throws
// ShapeError if an axis is out of range or repeated.
std::vector<std::int64_t> resolve_axes(const std::vector<int>& axes, const Shape& shape,
                                       std::string_view op, const SourceLocation& location);
std::int64_t resolve_axis(int axis, const Shape& shape, std::string_view op,
                          const SourceLocation& location);
// Returns the shape to which both broadcast. Throws ShapeError if they do not.
Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view op,
                       const SourceLocation& location);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
