// SPDX-License-Identifier: MIT
// Traces: the current one, the composites within it, and axis arithmetic for all ops.
#include "api/trace.h"

#include <algorithm>
#include <atomic>

#include "ops/registry.h"

namespace tensorgrad {
namespace {

thread_local Trace* current_trace = nullptr;

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

}  // namespace

Trace::Trace() : serial_(next_serial()) {}

Trace* Trace::active() { return current_trace; }

Trace& Trace::current(std::string_view op, const Site& site) {
  if (current_trace == nullptr) {
    throw UserError(std::string(op) +
                        ": ops may only be called in a function that is being traced (one given to "
                        "compile, compile_forward or attach)",
                    site);
  }
  return *current_trace;
}

ValueId Trace::value(const Tensor& tensor, std::string_view op, const Site& site) const {
  if (tensor.trace() == nullptr) {
    throw UserError(std::string(op) + ": the tensor is empty (default-constructed)", site);
  }
  if (tensor.trace() != this || tensor.serial() != serial_) {
    throw UserError(std::string(op) + ": the tensor belongs to another traced function", site);
  }
  return tensor.id();
}

ValueId Trace::scalar(const std::string& name, DType dtype, double initial, const Site& site) {
  const ValueId known = graph.find_leaf(ops::scalar, name);
  if (known != kNoValue) return known;
  scalars.emplace(name, initial);
  return graph.add(ops::scalar, {}, {{"name", name}, {"dtype", static_cast<std::int64_t>(dtype)}},
                   site, composite);
}

TraceScope::TraceScope(Trace& trace) {
  if (current_trace != nullptr) {
    throw UserError("a function that is being traced may not compile or attach another");
  }
  current_trace = &trace;
}

TraceScope::~TraceScope() { current_trace = nullptr; }

Composite::Composite(const char* name, const Site& site)
    : trace_(Trace::current(name, site)), outermost_(trace_.composite.empty()) {
  if (!outermost_) return;
  trace_.composite = name;
  trace_.composite_site = site;
}

Composite::~Composite() {
  if (!outermost_) return;
  trace_.composite.clear();
  trace_.composite_site = {};
}

Shape Tensor::shape() const {
  if (trace_ == nullptr || trace_ != Trace::active()) {
    throw UserError("shape: the tensor is empty, or used outside of the function that made it");
  }
  return trace_->graph[trace_->value(*this, "shape", {})].type.shape;
}

DType Tensor::dtype() const {
  if (trace_ == nullptr || trace_ != Trace::active()) {
    throw UserError("dtype: the tensor is empty, or used outside of the function that made it");
  }
  return trace_->graph[trace_->value(*this, "dtype", {})].type.dtype;
}

std::int64_t Tensor::size(int axis) const {
  const Shape sizes = shape();
  return sizes[static_cast<size_t>(resolve_axis(axis, sizes, "size", {}))];
}

std::int64_t resolve_axis(int axis, const Shape& shape, std::string_view op, const Site& site) {
  const int rank = static_cast<int>(shape.size());
  if (axis < -rank || axis >= rank) {
    throw ShapeError(
        std::string(op) + ": axis " + std::to_string(axis) + " is not one of " + to_string(shape),
        site);
  }
  return axis < 0 ? axis + rank : axis;
}

std::vector<std::int64_t> resolve_axes(const std::vector<int>& axes, const Shape& shape,
                                       std::string_view op, const Site& site) {
  std::vector<std::int64_t> result;
  if (axes.empty()) {
    for (std::size_t d = 0; d < shape.size(); ++d) result.push_back(static_cast<std::int64_t>(d));
    return result;
  }
  for (const int axis : axes) result.push_back(resolve_axis(axis, shape, op, site));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    throw ShapeError(std::string(op) + ": an axis is named twice", site);
  }
  return result;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view op, const Site& site) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t from_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t from_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      throw ShapeError(
          std::string(op) + ": shapes do not broadcast: a " + to_string(a) + ", b " + to_string(b),
          site);
    }
    out[out.size() - 1 - i] = from_a == 1 ? from_b : from_a;
  }
  return out;
}

}  // namespace tensorgrad
