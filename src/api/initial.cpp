// SPDX-License-Identifier: MIT
// Initial values: what the functions of tensorgrad::init say, and the elements that come of it.
#include "api/initial.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/numbers.h"
#include "compile/host_random.h"
#include "tensorgrad/feed.h"

namespace tensorgrad {
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
    throw UserError("trunc_normal: a deviation above 0 and lo < hi expected, got " +
                    number_text(stddev) + ", " + number_text(lo) + " and " + number_text(hi));
  }
  return {.kind = Init::Kind::kTruncatedNormal, .a = mean, .b = stddev, .lo = lo, .hi = hi};
}
Init literal(std::vector<float> values) {
  return {.kind = Init::Kind::kLiteral, .values = std::move(values)};
}
Init literal(const HostTensor& values, Loc loc) {
  if (values.dtype != DType::kF32 && values.dtype != DType::kF16) {
    throw DtypeError("literal: parameters are f32, so f32 or f16 is expected, got " +
                         std::string(to_string(values.dtype)),
                     loc);
  }
  return {.kind = Init::Kind::kLiteral, .values = values.floats(), .shape = values.shape};
}
Init inverse_softplus(double lo, double hi, double floor) {
  if (!(lo > 0 && lo < hi)) {
    throw UserError("inverse_softplus: 0 < lo < hi expected, got " + number_text(lo) + " and " +
                    number_text(hi));
  }
  return {.kind = Init::Kind::kInverseSoftplus, .a = floor, .lo = lo, .hi = hi};
}
Init log_of_uniform(double lo, double hi) {
  if (!(lo > 0 && lo < hi)) {
    throw UserError("log_of_uniform: 0 < lo < hi expected, got " + number_text(lo) + " and " +
                    number_text(hi));
  }
  return {.kind = Init::Kind::kLogOfUniform, .lo = lo, .hi = hi};
}
Init orthogonal(double gain) { return {.kind = Init::Kind::kOrthogonal, .a = gain}; }

Fans fans(const Shape& shape, Loc loc) {
  if (shape.size() < 2) {
    throw ShapeError(
        "fans: a weight [out, in, ..] of at least two axes expected, got " + to_string(shape), loc);
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

namespace {

double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// Where the normal distribution cut to [lo, hi] has the share u below it: by bisection, in which
// the nearer tail is what is compared, so that far tails keep their digits.
double truncated_normal(double u, double lo, double hi) {
  if (lo > 0) return -truncated_normal(1 - u, -hi, -lo);
  const double share = normal_below(lo) + u * (normal_below(hi) - normal_below(lo));
  double left = std::max(lo, -40.0), right = std::min(hi, 40.0);
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (left + right);
    (normal_below(middle) < share ? left : right) = middle;
  }
  return 0.5 * (left + right);
}

// Gram and Schmidt's way, twice for each vector, which is enough (Giraud et al. 2005). Its R has a
// positive diagonal, so that of all orthonormal matrices each is as likely as any other.
void orthogonal(std::int64_t rows, std::int64_t columns, double gain, std::uint32_t stream,
                std::uint32_t seed, std::span<float> values) {
  const bool by_row = rows <= columns;
  const auto count = static_cast<size_t>(by_row ? rows : columns);
  const auto size = static_cast<size_t>(by_row ? columns : rows);
  std::vector<double> v(count * size);
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = random_normal(static_cast<std::uint32_t>(i), stream, seed, 0);
  const auto product = [&](std::size_t i, std::size_t j) {
    double total = 0;
    for (std::size_t k = 0; k < size; ++k) total += v[i * size + k] * v[j * size + k];
    return total;
  };
  for (std::size_t i = 0; i < count; ++i) {
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < i; ++j) {
        const double along = product(i, j);
        for (std::size_t k = 0; k < size; ++k) v[i * size + k] -= along * v[j * size + k];
      }
    }
    const double length = std::sqrt(product(i, i));
    for (std::size_t k = 0; k < size; ++k) {
      v[i * size + k] /= length;
      values[by_row ? i * size + k : k * count + i] = static_cast<float>(gain * v[i * size + k]);
    }
  }
}

float element(const Init& init, std::uint32_t i, std::uint32_t stream, std::uint32_t seed) {
  switch (init.kind) {
    case Init::Kind::kConstant: return static_cast<float>(init.a);
    case Init::Kind::kUniform:
      return static_cast<float>(init.a + (init.b - init.a) * random_uniform(i, stream, seed, 0));
    case Init::Kind::kNormal:
      return static_cast<float>(init.a + init.b * random_normal(i, stream, seed, 0));
    case Init::Kind::kTruncatedNormal: {
      const double u = random_uniform(i, stream, seed, 0) + 0x1p-25;  // the middle of its interval
      const double x =
          truncated_normal(u, (init.lo - init.a) / init.b, (init.hi - init.a) / init.b);
      return static_cast<float>(init.a + init.b * x);
    }
    case Init::Kind::kLiteral: return init.values[i];
    case Init::Kind::kInverseSoftplus: {
      const double u = random_uniform(i, stream, seed, 0);
      const double y = std::max(init.a, init.lo * std::pow(init.hi / init.lo, u));
      return static_cast<float>(y + std::log(-std::expm1(-y)));
    }
    case Init::Kind::kLogOfUniform:
      return static_cast<float>(
          std::log(init.lo + (init.hi - init.lo) * random_uniform(i, stream, seed, 0)));
    case Init::Kind::kOrthogonal: break;
  }
  return 0;
}

}  // namespace

void check_initial(const std::string& what, const Init& init, const Shape& shape,
                   const Site& site) {
  const auto given = static_cast<std::int64_t>(init.values.size());
  if (init.kind == Init::Kind::kLiteral && init.shape && *init.shape != shape) {
    throw ShapeError(what + ": " + to_string(shape) + " expected, got " + to_string(*init.shape),
                     site);
  }
  if (init.kind == Init::Kind::kLiteral && given != numel(shape)) {
    throw ShapeError(what + ": " + to_string(shape) + " has " + std::to_string(numel(shape)) +
                         " elements, got " + std::to_string(given) + " values",
                     site);
  }
  if (init.kind == Init::Kind::kOrthogonal && shape.size() < 2) {
    throw ShapeError(what + ": init::orthogonal is for at least two axes, got " + to_string(shape),
                     site);
  }
}

void fill_initial(const Init& init, const Shape& shape, std::uint32_t stream, std::uint32_t seed,
                  std::span<float> values) {
  if (init.kind == Init::Kind::kOrthogonal) {
    orthogonal(shape[0], numel(shape) / shape[0], init.a, stream, seed, values);
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = element(init, static_cast<std::uint32_t>(i), stream, seed);
}

}  // namespace tensorgrad
