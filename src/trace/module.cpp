// SPDX-License-Identifier: MIT
// Parameters, buffers and the traversal of a model's fields.
#include "tensorgrad/nn/module.h"

#include "ops/registry.h"
#include "tensorgrad/train/host_tensor.h"
#include "trace/composite.h"
#include "trace/initial.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Modules nest by value. Only a pointer to a parent could exceed this depth.
constexpr std::size_t kMaxModuleDepth = 256;

}  // namespace

Parameter::Parameter(Shape shape, Init init, SourceLocation loc)
    : shape_(std::move(shape)), init_(std::move(init)), location_(loc) {
  check_shape("parameter", shape_, location_);
  check_initial("parameter", init_, shape_, location_);
}

Tensor Parameter::tensor(SourceLocation location) const {
  Trace& trace = Trace::current("parameter", location.known() ? location : location_);
  const auto found = trace.parameters.find(this);
  if (found == trace.parameters.end()) {
    UserError error(
        "parameter " + to_string(shape_) +
            " is not part of the traced model: name its field in the TG_MODULE of its struct, "
            "and use the model passed to the traced function",
        location.known() ? location : location_);
    error.add_context("while reading the parameter created at " + to_string(location_));
    throw error;
  }
  return trace.tensor(found->second);
}

Buffer::Buffer(Shape shape, double initial, DType dtype, SourceLocation loc)
    : shape_(std::move(shape)), initial_(initial), dtype_(dtype), location_(loc) {
  check_shape("buffer", shape_, location_);
}

Buffer Buffer::from(HostTensor values, SourceLocation loc) {
  Buffer buffer(values.shape, 0, values.dtype, loc);
  buffer.values_ = std::make_shared<const HostTensor>(std::move(values));
  return buffer;
}

// Returns the leaf of the state. Creates it on first use.
ValueId Buffer::leaf(Trace& trace, const SourceLocation& location) const {
  const auto found = trace.buffers.find(this);
  if (found == trace.buffers.end()) {
    UserError error("buffer " + to_string(shape_) +
                        " is not part of the traced model: name its field in the TG_MODULE of its "
                        "struct, and use the model passed to the traced function",
                    location.known() ? location : location_);
    error.add_context("while reading the buffer created at " + to_string(location_));
    throw error;
  }
  if (dtype_ == DType::kF16 && trace.training) {
    throw DtypeError("buffer '" + found->second + "': f16 is not supported in training",
                     location.known() ? location : location_);
  }
  const ValueId known = trace.graph.find_leaf(ops::state, found->second);
  if (known != kNoValue) return known;
  return trace.graph.add(ops::state, {},
                         {{"name", found->second},
                          {"shape", shape_},
                          {"dtype", static_cast<std::int64_t>(dtype_)},
                          {"init", initial_}},
                         location_);
}

Tensor Buffer::tensor(SourceLocation location) const {
  Trace& trace = Trace::current("buffer", location.known() ? location : location_);
  const ValueId own = leaf(trace, location);
  for (const GraphUpdate& update : trace.graph.updates) {
    if (update.leaf == own) return trace.tensor(update.value);
  }
  return trace.tensor(own);
}

void Buffer::set(Tensor value, SourceLocation location) const {
  OpContext ctx("buffer", location.known() ? location : location_);
  const ValueId own = leaf(ctx.trace, location);
  const Type type = ctx.trace.graph[own].type;
  const Expr to = ctx.in(cast_if_autocast(value, type.dtype, ctx.location()));
  if (to.type() != type) {
    throw ShapeError(ctx.name() + ": expected " + to_string(type) + ", got " + to_string(to.type()),
                     ctx.location());
  }
  for (GraphUpdate& update : ctx.trace.graph.updates) {
    if (update.leaf != own) continue;
    update.value = to.id;
    return;
  }
  ctx.trace.graph.updates.push_back({own, to.id});
}

Parameter::operator Tensor() const { return tensor(); }

void ParameterVisitor::enter(std::string_view name) {
  names_.emplace_back(name);
  if (names_.size() > kMaxModuleDepth)
    throw UserError("model: the module '" + names_.front() + "' contains itself");
}

void ParameterVisitor::leave() { names_.pop_back(); }

std::string ParameterVisitor::path(std::string_view name) const {
  std::string text;
  for (const std::string& each : names_) text += each + ".";
  return text + std::string(name);
}

void ParameterVisitor::parameter(std::string_view name, const Parameter& parameter) {
  found_(path(name), parameter);
}

void ParameterVisitor::buffer(std::string_view name, const Buffer& buffer) {
  if (found_buffer_) found_buffer_(path(name), buffer);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
