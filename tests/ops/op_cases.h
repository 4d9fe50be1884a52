// SPDX-License-Identifier: MIT
// Cases of the op tests: one op (or a few) applied to arguments of given shapes.
#pragma once

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "support/graph_builder.h"

namespace tensorgrad::testing {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Argument {
  Shape shape;
  double lo = -2, hi = 2;
  DType dtype = f32;
  Values values = {};  // if empty: drawn from [lo, hi]
};

struct OpCase {
  std::string name;  // letters, digits and _
  std::vector<Argument> args;
  std::function<Tensor(const std::vector<Tensor>&)> apply;
  bool differentiable = true;  // has a gradient that differences can check
  bool edges = false;          // the arguments include values for which f32 overflows or is NaN
};

// Every entry of pointwise.def: each supported element type, broadcasting, edge values.
std::vector<OpCase> pointwise_cases();
// Every other op in several shapes and layouts, and the composites.
std::vector<OpCase> view_cases();
std::vector<OpCase> reduce_cases();
std::vector<OpCase> matmul_cases();
std::vector<OpCase> index_cases();
std::vector<OpCase> scan_cases();
std::vector<OpCase> composite_cases();
std::vector<OpCase> conv_cases();
std::vector<OpCase> pool_cases();
std::vector<OpCase> function_cases();
std::vector<OpCase> arranging_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> state_space_cases();
std::vector<OpCase> state_space_forms();  // of these, each variant in one size
// Integer and boolean arguments for ops whose other cases use floats.
std::vector<OpCase> integer_cases();
std::vector<OpCase> random_cases();
// All of the above.
const std::vector<OpCase>& all_cases();
// Returns the name of a case's test in ctest.
inline std::string name_of(const ::testing::TestParamInfo<OpCase>& info) { return info.param.name; }

// Records which ops, with which element types, and which functions built on them occur in the graph
// from node `first` on. report_covered() writes them to the test report; tools/ops_page.py
// generates docs/ops.md from the tests that passed.
void note_covered(const Graph& graph, std::set<std::string>& covered, ValueId first = 0);
void report_covered(const std::set<std::string>& covered);

// Adds the arguments as inputs of the builder and returns them.
std::vector<Tensor> inputs_of(GraphBuilder& builder, const OpCase& each);

}  // namespace tensorgrad::testing
