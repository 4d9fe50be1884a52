// SPDX-License-Identifier: MIT
// Parameters and the walk over a model's fields.
#include "tensorgrad/module.h"

#include "api/trace.h"

namespace tensorgrad {
namespace {

// Modules nest by value, so only a pointer back up can go deeper than any model does.
constexpr std::size_t kDeepest = 256;

}  // namespace

namespace init {

Init zeros() { return constant(0); }
Init ones() { return constant(1); }
Init constant(double value) { return {Init::Kind::kConstant, value, 0, {}}; }
Init uniform(double lo, double hi) { return {Init::Kind::kUniform, lo, hi, {}}; }
Init normal(double mean, double stddev) { return {Init::Kind::kNormal, mean, stddev, {}}; }
Init literal(std::vector<float> values) { return {Init::Kind::kLiteral, 0, 0, std::move(values)}; }

}  // namespace init

Parameter::Parameter(Shape shape, Init init, std::source_location loc)
    : shape_(std::move(shape)), init_(std::move(init)), site_(loc) {
  check_shape("parameter", shape_, site_);
  const auto given = static_cast<std::int64_t>(init_.values.size());
  if (init_.kind == Init::Kind::kLiteral && given != numel(shape_)) {
    throw ShapeError("parameter: " + to_string(shape_) + " has " + std::to_string(numel(shape_)) +
                         " elements, got " + std::to_string(given) + " values",
                     site_);
  }
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

}  // namespace tensorgrad
