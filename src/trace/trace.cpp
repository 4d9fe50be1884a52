// SPDX-License-Identifier: MIT
// The current trace, composites, and axis arithmetic for all ops.
#include "trace/trace.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ostream>

#include "base/numbers.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

thread_local Trace* current_trace = nullptr;

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

}  // namespace

Trace::Trace() : serial_(next_serial()) {}

Trace* Trace::active() { return current_trace; }

Trace& Trace::current(std::string_view op, const SourceLocation& location) {
  if (current_trace == nullptr) {
    throw UserError(std::string(op) +
                        ": ops may only be called inside a traced function (one passed to "
                        "compile, compile_function or attach)",
                    location);
  }
  return *current_trace;
}

ValueId Trace::value(const Tensor& tensor, std::string_view op,
                     const SourceLocation& location) const {
  if (tensor.trace() == nullptr) {
    throw UserError(std::string(op) + ": the tensor is empty (default-constructed)", location);
  }
  if (tensor.trace() != this || tensor.serial() != serial_) {
    throw UserError(std::string(op) + ": the tensor belongs to another traced function", location);
  }
  return tensor.id();
}

ValueId Trace::scalar(const std::string& name, DType dtype, double initial,
                      const SourceLocation& location) {
  const ValueId known = graph.find_leaf(ops::scalar, name);
  if (known != kNoValue) {
    if (scalars.at(name) != initial) {
      throw UserError("scalar: '" + name + "' already has the initial value " +
                          number_text(scalars.at(name)) + ", got " + number_text(initial),
                      location);
    }
    return known;
  }
  scalars.emplace(name, initial);
  return graph.add(ops::scalar, {}, {{"name", name}, {"dtype", static_cast<std::int64_t>(dtype)}},
                   location, composite);
}

TraceScope::TraceScope(Trace& trace) {
  if (current_trace != nullptr) {
    throw UserError(
        "compile, compile_function and attach may not be called inside a traced function");
  }
  current_trace = &trace;
}

TraceScope::~TraceScope() { current_trace = nullptr; }

Composite::Composite(const char* name, const SourceLocation& location)
    : trace_(Trace::current(name, location)), outermost_(trace_.composite.empty()) {
  if (!outermost_) return;
  trace_.composite = name;
  trace_.composite_location = location;
}

Composite::~Composite() {
  if (!outermost_) return;
  trace_.composite.clear();
  trace_.composite_location = {};
}

// Inside a composite, errors of these members are errors of the composite.
std::ostream& detail::write(std::ostream& out, const Tensor& tensor) {
  return out << to_string(tensor.dtype()) << to_string(tensor.shape());
}

Shape Tensor::shape(Loc loc) const {
  OpContext ctx("shape", loc);
  return ctx.in(*this).shape();
}

DType Tensor::dtype(Loc loc) const {
  OpContext ctx("dtype", loc);
  return ctx.in(*this).dtype();
}

std::int64_t Tensor::size(int axis, Loc loc) const {
  OpContext ctx("size", loc);
  const Shape sizes = ctx.in(*this).shape();
  return sizes[static_cast<size_t>(resolve_axis(axis, sizes, ctx.name(), ctx.location()))];
}

void check_number(const OpContext& ctx, double value, DType dtype) {
  if (register_dtype(dtype) == DType::kF32) return;
  const double least = dtype == DType::kI32 ? -0x1p31 : 0;
  const double most = dtype == DType::kI32 ? 0x1p31 - 1 : dtype == DType::kU32 ? 0x1p32 - 1 : 1;
  if (value == std::floor(value) && value >= least && value <= most) return;
  throw DtypeError(ctx.name() + ": the number " + format_text("%.17g", value) +
                       " is not representable as " + std::string(to_string(dtype)),
                   ctx.location());
}

std::int64_t resolve_axis(int axis, const Shape& shape, std::string_view op,
                          const SourceLocation& location) {
  const int rank = static_cast<int>(shape.size());
  if (axis < -rank || axis >= rank) {
    throw ShapeError(std::string(op) + ": axis " + std::to_string(axis) + " is out of range for " +
                         to_string(shape),
                     location);
  }
  return axis < 0 ? axis + rank : axis;
}

std::vector<std::int64_t> resolve_axes(const std::vector<int>& axes, const Shape& shape,
                                       std::string_view op, const SourceLocation& location) {
  std::vector<std::int64_t> result;
  if (axes.empty()) {
    for (std::size_t d = 0; d < shape.size(); ++d) result.push_back(static_cast<std::int64_t>(d));
    return result;
  }
  for (const int axis : axes) result.push_back(resolve_axis(axis, shape, op, location));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    throw ShapeError(std::string(op) + ": an axis is repeated", location);
  }
  return result;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view op,
                       const SourceLocation& location) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t from_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t from_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      throw ShapeError(
          std::string(op) + ": shapes do not broadcast: a " + to_string(a) + ", b " + to_string(b),
          location);
    }
    out[out.size() - 1 - i] = from_a == 1 ? from_b : from_a;
  }
  return out;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
