// SPDX-License-Identifier: MIT
// Reference results with a bound on how far rounding may take a device from them. The bound is
// propagated through every op. A sum with cancellation or a quotient of small numbers is allowed
// more error than a plain product. A comparison of sides that are too close may have either result.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct WithErrorBound {
  RefTensor value;
  std::vector<double> error;  // one per element; empty: all are exact

  [[nodiscard]] double error_at(std::size_t i) const { return error.empty() ? 0 : error[i]; }
};

// Default relative error of a single op. Much more than the rounding of f32, to allow for the
// built-in functions of GPUs.
inline constexpr double kOpTolerance = 1e-5;

// Returns a stored value: exact, except for subnormal numbers, which a device may read as zero.
WithErrorBound error_bound_in_memory(Type type, std::vector<double> data);

// Evaluates a node that is not a stored leaf.
WithErrorBound evaluate_with_error_bound(const Node& node,
                                         const std::vector<const WithErrorBound*>& inputs,
                                         double tolerance);

struct Difference {
  std::int64_t element = 0;
  double got = 0, want = 0, allowed = 0;
};

// Returns the first element of `got` outside the bound. NaN equals NaN.
std::optional<Difference> first_difference(const WithErrorBound& want,
                                           const std::vector<double>& got);

// Returns "element 5 [0,5] is 1.25, expected 3.5 (rounding explains 1e-05)".
std::string to_string(const Difference& difference, const Shape& shape);

struct ErrorBoundOptions {
  std::function<std::vector<double>(const Node& leaf)> leaf;  // for stored leaves and scalars
  double tolerance = kOpTolerance;
};
// Returns the values of the graph's outputs, followed by those of its updates, in order.
std::vector<WithErrorBound> interpret_with_error_bound(const Graph& graph,
                                                       const ErrorBoundOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
