// SPDX-License-Identifier: MIT
// What the reference gives, with a bound on how far rounding may take a device from it. The bound
// follows the values through every op, so that a sum that cancels or a quotient of small numbers is
// allowed more than a plain product, and a comparison whose sides are too close to call either way.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct Bounded {
  RefTensor value;
  std::vector<double> error;  // one for each element; empty: all are exact

  [[nodiscard]] double error_at(std::size_t i) const { return error.empty() ? 0 : error[i]; }
};

// The relative error that one op may make of its own, where nothing else is said. Many times what
// f32 has, for the built-in functions of GPUs.
inline constexpr double kOpTolerance = 1e-5;

// A value in memory: exact, but for subnormal numbers, which a device may read as zero.
Bounded bounded_in_memory(Type type, std::vector<double> data);

// What a node that is no stored leaf gives.
Bounded evaluate_bounded(const Node& node, const std::vector<const Bounded*>& inputs,
                         double tolerance);

struct Difference {
  std::int64_t element = 0;
  double got = 0, want = 0, allowed = 0;
};

// The first element of `got` that the bound does not explain. NaN equals NaN.
std::optional<Difference> first_difference(const Bounded& want, const std::vector<double>& got);

// "element 5 [0,5] is 1.25, expected 3.5 (rounding explains 1e-05)"
std::string to_string(const Difference& difference, const Shape& shape);

struct BoundedOptions {
  std::function<std::vector<double>(const Node& leaf)> leaf;  // stored leaves and scalars
  double tolerance = kOpTolerance;
};
// The values of the graph's outputs and then of its updates, in order.
std::vector<Bounded> interpret_bounded(const Graph& graph, const BoundedOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
