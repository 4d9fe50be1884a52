// SPDX-License-Identifier: MIT
// Generates initial values. Each element depends only on its own random words, so the result does
// not depend on the number of threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/parallel.h"
#include "compile/runtime/host_random.h"
#include "trace/initial.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::size_t kDrawnBlock = 1024;  // elements drawn at once
constexpr std::size_t kBlocksOfTask = 64;  // takes about a millisecond
constexpr std::size_t kMaxThreads = 16;
constexpr double kMiddle = 0x1p-25;  // middle of the interval that a random number represents

double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// Returns the quantile of the standard normal distribution: an approximation within 3e-3 (Hastings;
// Abramowitz and Stegun 26.2.22), refined by two steps of Halley's method.
double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);
  const double t = std::sqrt(-2 * std::log(p));
  double x = (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t * t) - t;
  for (int step = 0; step < 2; ++step) {
    const double newton =
        (normal_below(x) - p) * std::sqrt(2 * std::numbers::pi) * std::exp(0.5 * x * x);
    x -= newton / (1 + 0.5 * x * newton);
  }
  return x;
}

// Returns the u-quantile of the normal distribution truncated to [lo, hi]. Computes it from the
// nearer tail, so that far tails keep their precision.
double truncated_normal(double u, double lo, double hi) {
  if (lo > 0) return -truncated_normal(1 - u, -hi, -lo);
  const double below = normal_below(lo);
  return std::clamp(normal_quantile(below + u * (normal_below(hi) - below)), lo, hi);
}

// Gram-Schmidt orthogonalization, applied twice to each vector, which is enough (Giraud et al.
// 2005). The diagonal of R is positive, so the result is uniformly distributed over orthonormal
// matrices.
void orthogonal(std::int64_t rows, std::int64_t columns, double gain, std::uint32_t stream,
                std::uint32_t seed, std::span<float> values) {
  const bool by_row = rows <= columns;
  const auto count = static_cast<size_t>(by_row ? rows : columns);
  const auto size = static_cast<size_t>(by_row ? columns : rows);
  std::vector<double> v(count * size);
  std::vector<std::uint32_t> words(2 * v.size());
  random_words(0, stream, seed, 0, words);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = normal_of(words[2 * i], words[2 * i + 1]);
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

std::size_t words_per_element(const Init& init) {
  switch (init.kind) {
    case Init::Kind::kConstant:
    case Init::Kind::kLiteral: return 0;
    case Init::Kind::kNormal: return 2;
    default: return 1;
  }
}

// Returns element i, computed from its own random words.
float element(const Init& init, std::size_t i, const std::uint32_t* words) {
  switch (init.kind) {
    case Init::Kind::kConstant: return static_cast<float>(init.a);
    case Init::Kind::kLiteral: return init.values[i];
    case Init::Kind::kNormal:
      return static_cast<float>(init.a + init.b * normal_of(words[0], words[1]));
    case Init::Kind::kUniform:
      return static_cast<float>(init.a + (init.b - init.a) * uniform_of(words[0]));
    case Init::Kind::kTruncatedNormal: {
      const double x = truncated_normal(uniform_of(words[0]) + kMiddle, (init.lo - init.a) / init.b,
                                        (init.hi - init.a) / init.b);
      return static_cast<float>(init.a + init.b * x);
    }
    case Init::Kind::kInverseSoftplus: {
      const double y =
          std::max(init.a, init.lo * std::pow(init.hi / init.lo, uniform_of(words[0])));
      return static_cast<float>(y + std::log(-std::expm1(-y)));
    }
    case Init::Kind::kLogOfUniform:
      return static_cast<float>(std::log(init.lo + (init.hi - init.lo) * uniform_of(words[0])));
    case Init::Kind::kOrthogonal: break;
  }
  return 0;
}

}  // namespace

void fill_initial(const Init& init, const Shape& shape, std::uint32_t stream, std::uint32_t seed,
                  std::span<float> values) {
  if (init.kind == Init::Kind::kOrthogonal) {
    orthogonal(shape[0], numel(shape) / shape[0], init.a, stream, seed, values);
    return;
  }
  const std::size_t each = words_per_element(init);
  const auto fill_block = [&](std::size_t first) {
    std::array<std::uint32_t, 2 * kDrawnBlock> words;
    const std::size_t count = std::min(kDrawnBlock, values.size() - first);
    random_words(static_cast<std::uint32_t>(each * first), stream, seed, 0,
                 {words.data(), each * count});
    for (std::size_t i = 0; i < count; ++i)
      values[first + i] = element(init, first + i, words.data() + each * i);
  };
  constexpr std::size_t kDrawnTask = kDrawnBlock * kBlocksOfTask;
  in_parallel((values.size() + kDrawnTask - 1) / kDrawnTask, kMaxThreads, [&](std::size_t task) {
    const std::size_t end = std::min(values.size(), (task + 1) * kDrawnTask);
    for (std::size_t first = task * kDrawnTask; first < end; first += kDrawnBlock)
      fill_block(first);
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
