// SPDX-License-Identifier: MIT
// Factory functions of tensorgrad::init.
#include "trace/initial.h"

#include <cmath>

#include "base/numbers.h"
#include "tensorgrad/train/host_tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace init {

Init zeros() { return constant(0); }
Init ones() { return constant(1); }
Init constant(double value) { return {.kind = Init::Kind::kConstant, .a = value}; }
Init uniform(double lo, double hi) { return {.kind = Init::Kind::kUniform, .a = lo, .b = hi}; }
Init normal(double mean, double stddev) {
  return {.kind = Init::Kind::kNormal, .a = mean, .b = stddev};
}
Init trunc_normal(double mean, double stddev, double lo, double hi) {
  if (!(stddev > 0 && lo < hi)) {
    throw UserError("trunc_normal: expected a standard deviation above 0 and lo < hi, got " +
                    number_text(stddev) + ", " + number_text(lo) + " and " + number_text(hi));
  }
  return {.kind = Init::Kind::kTruncatedNormal, .a = mean, .b = stddev, .lo = lo, .hi = hi};
}
Init literal(std::vector<float> values) {
  return {.kind = Init::Kind::kLiteral, .values = std::move(values)};
}
Init literal(const HostTensor& values, Loc loc) {
  if (values.dtype != DType::kF32 && values.dtype != DType::kF16) {
    throw DtypeError(
        "literal: expected f32 or f16 for a parameter, got " + std::string(to_string(values.dtype)),
        loc);
  }
  return {.kind = Init::Kind::kLiteral, .values = values.floats(), .shape = values.shape};
}
Init inverse_softplus(double lo, double hi, double floor) {
  if (!(lo > 0 && lo < hi)) {
    throw UserError("inverse_softplus: expected 0 < lo < hi, got " + number_text(lo) + " and " +
                    number_text(hi));
  }
  return {.kind = Init::Kind::kInverseSoftplus, .a = floor, .lo = lo, .hi = hi};
}
Init log_of_uniform(double lo, double hi) {
  if (!(lo > 0 && lo < hi)) {
    throw UserError("log_of_uniform: expected 0 < lo < hi, got " + number_text(lo) + " and " +
                    number_text(hi));
  }
  return {.kind = Init::Kind::kLogOfUniform, .lo = lo, .hi = hi};
}
Init orthogonal(double gain) { return {.kind = Init::Kind::kOrthogonal, .a = gain}; }

Fans fans(const Shape& shape, Loc loc) {
  if (shape.size() < 2) {
    throw ShapeError(
        "fans: expected a weight [out, in, ..] with at least two axes, got " + to_string(shape),
        loc);
  }
  const auto all = static_cast<double>(numel(shape));
  return {all / static_cast<double>(shape[0]), all / static_cast<double>(shape[1])};
}

double leaky_relu_gain(double slope) { return std::sqrt(2 / (1 + slope * slope)); }

namespace {

Init uniform_of_deviation(double deviation) {
  const double bound = std::sqrt(3.0) * deviation;
  return uniform(-bound, bound);
}

double kaiming(const Shape& shape, double gain, Fan fan, Loc loc) {
  const Fans both = fans(shape, loc);
  return gain / std::sqrt(fan == Fan::kIn ? both.in : both.out);
}

double xavier(const Shape& shape, double gain, Loc loc) {
  const Fans both = fans(shape, loc);
  return gain * std::sqrt(2 / (both.in + both.out));
}

}  // namespace

Init kaiming_uniform(const Shape& shape, double gain, Fan fan, Loc loc) {
  return uniform_of_deviation(kaiming(shape, gain, fan, loc));
}
Init kaiming_normal(const Shape& shape, double gain, Fan fan, Loc loc) {
  return normal(0, kaiming(shape, gain, fan, loc));
}
Init xavier_uniform(const Shape& shape, double gain, Loc loc) {
  return uniform_of_deviation(xavier(shape, gain, loc));
}
Init xavier_normal(const Shape& shape, double gain, Loc loc) {
  return normal(0, xavier(shape, gain, loc));
}

}  // namespace init

void check_initial(const std::string& what, const Init& init, const Shape& shape,
                   const SourceLocation& location) {
  const auto given = static_cast<std::int64_t>(init.values.size());
  if (init.kind == Init::Kind::kLiteral && init.shape && *init.shape != shape) {
    throw ShapeError(what + ": expected " + to_string(shape) + ", got " + to_string(*init.shape),
                     location);
  }
  if (init.kind == Init::Kind::kLiteral && given != numel(shape)) {
    throw ShapeError(what + ": " + to_string(shape) + " has " + std::to_string(numel(shape)) +
                         " elements, got " + std::to_string(given) + " values",
                     location);
  }
  if (init.kind == Init::Kind::kOrthogonal && shape.size() < 2) {
    throw ShapeError(
        what + ": init::orthogonal requires at least two axes, got " + to_string(shape), location);
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
