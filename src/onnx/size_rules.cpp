// SPDX-License-Identifier: MIT
// However a rule is found, it is verified for every size.
#include "onnx/size_rules.h"

#include <algorithm>
#include <cmath>

namespace tensorgrad::onnx {
namespace {

constexpr double kMaxWhole = 0x1p53;  // doubles represent all integers up to this

bool is_integral(double value) {
  return value == std::floor(value) && std::abs(value) <= kMaxWhole;
}

// Views the elements of a tensor as [outer, length, inner].
struct Around {
  std::int64_t outer = 1, length = 1, inner = 1;

  Around(const Shape& shape, std::size_t axis) : length(shape[axis]) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d != axis) (d < axis ? outer : inner) *= shape[d];
    }
  }
  [[nodiscard]] std::size_t at(std::int64_t o, std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>((o * length + i) * inner + j);
  }
};

bool follows(const Steps& steps, const NumberTensor& tensor, std::size_t axis) {
  const Around around(tensor.shape, axis);
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t i = 0; i < around.length; ++i) {
      for (std::int64_t j = 0; j < around.inner; ++j) {
        const std::int64_t base = steps.base[static_cast<std::size_t>(o * around.inner + j)];
        if (tensor.values[around.at(o, i, j)] != static_cast<double>(base + steps.step * i))
          return false;
      }
    }
  }
  return true;
}

}  // namespace

std::string text_of(const Line& line, const std::string& size_name) {
  std::string text = line.a == 1 ? size_name : std::to_string(line.a) + "*" + size_name;
  if (line.b != 0) text += (line.b > 0 ? "+" : "") + std::to_string(line.b);
  return text;
}

std::optional<Line> line_through(const Sizes& sizes, const Numbers& values) {
  if (!std::ranges::all_of(values, is_integral)) return std::nullopt;
  const auto first = static_cast<double>(sizes[0]);
  const double a = (values[1] - values[0]) / (static_cast<double>(sizes[1]) - first),
               b = values[0] - a * first;
  if (!is_integral(a) || !is_integral(b)) return std::nullopt;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (a * static_cast<double>(sizes[k]) + b != values[k]) return std::nullopt;
  }
  return Line{static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)};
}

std::optional<Line> reciprocal_line(const Sizes& sizes, const Numbers& values) {
  Numbers below;
  for (const double value : values) {
    if (value == 0 || !is_integral(std::round(1 / value))) return std::nullopt;
    below.push_back(std::round(1 / value));
  }
  const auto holds = [&](const Line& line) {
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const auto n = static_cast<double>(line.a * sizes[k] + line.b);
      if (static_cast<float>(1 / n) != static_cast<float>(values[k])) return false;
    }
    return true;
  };
  const auto multiple =
      static_cast<std::int64_t>(std::round(below[0] / static_cast<double>(sizes[0])));
  if (multiple != 0 && holds({multiple, 0})) return Line{multiple, 0};
  const std::optional<Line> line = line_through(sizes, below);
  return line && holds(*line) ? line : std::nullopt;
}

std::optional<Steps> steps_along(const Sizes& sizes, const std::vector<NumberTensor>& tensors,
                                 std::size_t axis) {
  Numbers lengths;
  for (const NumberTensor& each : tensors) lengths.push_back(static_cast<double>(each.shape[axis]));
  const std::optional<Line> length = line_through(sizes, lengths);
  if (!length) return std::nullopt;
  Steps steps{*length, 0, {}};
  const NumberTensor& longest =
      tensors[static_cast<std::size_t>(std::ranges::max_element(lengths) - lengths.begin())];
  const Around around(longest.shape, axis);
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t j = 0; j < around.inner; ++j) {
      const double base = longest.values[around.at(o, 0, j)];
      if (!is_integral(base)) return std::nullopt;
      steps.base.push_back(static_cast<std::int64_t>(base));
    }
  }
  const double step = longest.values[around.at(0, 1, 0)] - longest.values[around.at(0, 0, 0)];
  if (!is_integral(step)) return std::nullopt;
  steps.step = static_cast<std::int64_t>(step);
  const auto fits = [&](const NumberTensor& each) { return follows(steps, each, axis); };
  return std::ranges::all_of(tensors, fits) ? std::optional(steps) : std::nullopt;
}

}  // namespace tensorgrad::onnx
