// SPDX-License-Identifier: MIT
// The graph that ops are appended to, one per thread at a time.
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
  std::map<const Parameter*, ValueId> parameters;  // of the model that is traced
  std::map<const Buffer*, std::string> buffers;    // likewise: the names of their states
  bool training = true;                            // see is_training()
  bool autocast = false;                           // see Autocast
  bool exported = false;                           // to where the bits of f32 cannot be read
  bool any_size = false;                           // stands for traces of all dynamic sizes
  Scalars scalars;                                 // run-time scalars with their initial values
  std::map<std::string, ValueId> captures;
  std::vector<std::string> printed;  // names of captures that print() shows
  // Run-time scalars that the host computes, from the number of the update (from 1) and the others.
  std::map<std::string, PerUpdate> per_update;
  bool counts_updates = false;                 // some of them depend on the number of the update
  std::map<std::string, double> hyper_limits;  // what the optimizer's adjustable ones are below
  std::uint32_t random_ops = 0;                // number of random ops so far: their stream

  // The trace of this thread; throws UserError, naming the op, where there is none.
  static Trace& current(std::string_view op, const SourceLocation& location);
  static Trace* active();

  [[nodiscard]] Tensor tensor(ValueId id) { return {this, serial_, id}; }
  [[nodiscard]] Tensor tensor(const Ex& x) { return tensor(x.id); }
  // The value of a tensor of this trace; throws UserError for one of another.
  ValueId value(const Tensor& tensor, std::string_view op, const SourceLocation& location) const;
  // The run-time scalar of that name, made on first use.
  ValueId scalar(const std::string& name, DType dtype, double initial,
                 const SourceLocation& location);

  // What new nodes are said to be a part of: set by the outermost composite.
  SourceLocation composite_site;
  std::string composite;

 private:
  friend class TraceScope;
  std::uint64_t serial_;
};

// Makes a trace this thread's current one. Throws UserError where one is active.
class TraceScope {
 public:
  explicit TraceScope(Trace& trace);
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
  ~TraceScope();
};

// Everything made within it is part of the composite `name` called at `site`, unless it is itself
// within one.
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

// Where an op's nodes go: its line, or its composite's.
struct OpContext {
  OpContext(std::string_view op, const SourceLocation& location)
      : trace(Trace::current(op, location)),
        builder{trace.graph, trace.composite.empty() ? location : trace.composite_site,
                trace.composite, trace.composite.empty() ? std::string(op) : trace.composite} {}

  Ex in(const Tensor& tensor) { return {&builder, trace.value(tensor, name(), builder.location)}; }
  Tensor out(const Ex& x) { return trace.tensor(x); }

  // What the user called.
  [[nodiscard]] const std::string& name() const { return builder.name; }
  [[nodiscard]] const SourceLocation& location() const { return builder.location; }

  Trace& trace;
  Builder builder;
};

// Throws DtypeError where `value` is not one of an element type's.
void check_number(const OpContext& ctx, double value, DType dtype);

// Axes from the front, sorted, without repetition; none stands for all. Throws ShapeError.
std::vector<std::int64_t> resolve_axes(const std::vector<int>& axes, const Shape& shape,
                                       std::string_view op, const SourceLocation& location);
std::int64_t resolve_axis(int axis, const Shape& shape, std::string_view op,
                          const SourceLocation& location);
// The shape that both broadcast to. Throws ShapeError.
Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view op,
                       const SourceLocation& location);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
