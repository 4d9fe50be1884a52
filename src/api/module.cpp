// SPDX-License-Identifier: MIT
// Parameters, buffers and the walk over a model's fields.
#include "tensorgrad/nn/module.h"

#include "api/compose.h"
#include "api/initial.h"
#include "api/trace.h"
#include "ops/registry.h"

namespace tensorgrad {
namespace {

// Modules nest by value, so only a pointer back up can go deeper than any model does.
constexpr std::size_t kDeepest = 256;

}  // namespace

Parameter::Parameter(Shape shape, Init init, std::source_location loc)
    : shape_(std::move(shape)), init_(std::move(init)), site_(loc) {
  check_shape("parameter", shape_, site_);
  check_initial("parameter", init_, shape_, site_);
}

Tensor Parameter::tensor(Site site) const {
  Trace& trace = Trace::current("parameter", site.known() ? site : site_);
  const auto found = trace.parameters.find(this);
  if (found == trace.parameters.end()) {
    UserError error(
        "parameter " + to_string(shape_) +
            " is not a part of the model that is traced: name its field in the TG_MODULE of its "
            "struct, and use the model that the traced function is given",
        site.known() ? site : site_);
    error.add_context("while reading the parameter that is made at " + to_string(site_));
    throw error;
  }
  return trace.tensor(found->second);
}

Buffer::Buffer(Shape shape, double initial, DType dtype, std::source_location loc)
    : shape_(std::move(shape)), initial_(initial), dtype_(dtype), site_(loc) {
  check_shape("buffer", shape_, site_);
}

// The state's leaf, made on first use.
ValueId Buffer::leaf(Trace& trace, const Site& site) const {
  const auto found = trace.buffers.find(this);
  if (found == trace.buffers.end()) {
    UserError error("buffer " + to_string(shape_) +
                        " is not a part of the model that is traced: name its field in the "
                        "TG_MODULE of its struct, and use the model that the traced function is "
                        "given",
                    site.known() ? site : site_);
    error.add_context("while reading the buffer that is made at " + to_string(site_));
    throw error;
  }
  if (dtype_ == DType::kF16 && trace.training) {
    throw DtypeError("buffer '" + found->second + "': f16 is for functions that are not trained",
                     site.known() ? site : site_);
  }
  const ValueId known = trace.graph.find_leaf(ops::state, found->second);
  if (known != kNoValue) return known;
  return trace.graph.add(ops::state, {},
                         {{"name", found->second},
                          {"shape", shape_},
                          {"dtype", static_cast<std::int64_t>(dtype_)},
                          {"init", initial_}},
                         site_);
}

Tensor Buffer::tensor(Site site) const {
  Trace& trace = Trace::current("buffer", site.known() ? site : site_);
  const ValueId own = leaf(trace, site);
  for (const GraphUpdate& update : trace.graph.updates) {
    if (update.leaf == own) return trace.tensor(update.value);
  }
  return trace.tensor(own);
}

void Buffer::set(Tensor value, Site site) const {
  OpContext ctx("buffer", site.known() ? site : site_);
  const ValueId own = leaf(ctx.trace, site);
  const Type type = ctx.trace.graph[own].type;
  const Ex to = ctx.in(of_type(value, type.dtype, ctx.site()));
  if (to.type() != type) {
    throw ShapeError(ctx.name() + ": it is " + to_string(type) + ", set to " + to_string(to.type()),
                     ctx.site());
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
  if (names_.size() > kDeepest)
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

}  // namespace tensorgrad
