// SPDX-License-Identifier: MIT
// What the tests of ops go through: one op (or a few) on arguments of given shapes.
#pragma once

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "support/sketch.h"

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
  bool edges = false;          // the arguments are where f32 overflows or is not a number
};

// Every row of pointwise.def: each element type it takes, broadcasting, edge values.
std::vector<OpCase> pointwise_cases();
// Every other op, in several shapes and layouts, and the composites.
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
std::vector<OpCase> state_space_forms();  // of these, each form in one size
// Integers and truths in what the others give floats.
std::vector<OpCase> integer_cases();
std::vector<OpCase> random_cases();
// All of the above.
const std::vector<OpCase>& all_cases();
// What ctest calls the test of a case.
inline std::string name_of(const ::testing::TestParamInfo<OpCase>& info) { return info.param.name; }

// Notes in the test's report which ops, of which element types, and which functions made of them
// the graph has from node `first` on; tools/ops_page.py makes docs/ops.md of what passed.
void note_covered(const Graph& graph, std::set<std::string>& covered, ValueId first = 0);
void report_covered(const std::set<std::string>& covered);

// The arguments as inputs of the sketch.
std::vector<Tensor> inputs_of(Sketch& sketch, const OpCase& each);

}  // namespace tensorgrad::testing
