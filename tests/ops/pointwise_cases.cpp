// SPDX-License-Identifier: MIT
// Cases generated from the entries of pointwise.def: `samples` sets the ranges, and the WGSL column
// the types.
#include <algorithm>
#include <cmath>
#include <map>

#include "op_cases.h"
#include "ops/pointwise.h"

namespace tensorgrad::testing {
namespace {

using Apply = std::function<Tensor(const std::vector<Tensor>&)>;
constexpr DType kTypes[] = {f32, i32, u32, boolean};

// Returns the public function of an entry; `to` is the type for cast and bitcast.
Apply public_function(const std::string& name, [[maybe_unused]] DType to) {
#define POINTWISE1(op, ...) \
  if (name == #op) return [](const std::vector<Tensor>& t) { return tensorgrad::op(t[0]); };
#define POINTWISE2(op, ...) \
  if (name == #op) return [](const std::vector<Tensor>& t) { return tensorgrad::op(t[0], t[1]); };
#define POINTWISE3(op, ...) \
  if (name == #op)          \
    return [](const std::vector<Tensor>& t) { return tensorgrad::op(t[0], t[1], t[2]); };
#define POINTWISE4(op, ...) \
  if (name == #op)          \
    return [](const std::vector<Tensor>& t) { return tensorgrad::op(t[0], t[1], t[2], t[3]); };
#define POINTWISE_TO(op, ...) \
  if (name == #op) return [to](const std::vector<Tensor>& t) { return tensorgrad::op(t[0], to); };
#include "ops/pointwise.def"
  return {};
}

bool takes(const OpDef& op, DType dtype) {
  return !op.code->wgsl[static_cast<std::size_t>(dtype)].empty();
}

Values edge_values(DType dtype) {
  if (dtype == boolean) return {0, 1};
  if (dtype == i32) return {0, 1, -1, 2, -7, 31, 32, 33, 2147483647.0, -2147483648.0};
  if (dtype == u32) return {0, 1, 2, 7, 31, 32, 33, 2147483648.0, 4294967295.0};
  return {0.0, -0.0, 1,     -1,    0.5, -0.5, 1.5, 2.5,  -2.5, 3,     1e-6, -1e-6, 88,
          -88, 88.7, -86.9, -87.2, 100, -100, 1e4, -1e4, 3e38, -3e38, kInf, -kInf, kNan};
}

// Returns every combination of edge values, as one list per operand.
std::vector<Argument> edge_arguments(const std::vector<DType>& types) {
  std::vector<Values> lists(types.size());
  std::size_t total = 1;
  for (const DType dtype : types) total *= edge_values(dtype).size();
  for (std::size_t i = 0; i < total; ++i) {
    std::size_t rest = i;
    for (std::size_t k = 0; k < types.size(); ++k) {
      const Values edges = edge_values(types[k]);
      lists[k].push_back(edges[rest % edges.size()]);
      if (types[k] == f32) lists[k].back() = static_cast<float>(lists[k].back());
      rest /= edges.size();
    }
  }
  std::vector<Argument> args;
  for (std::size_t k = 0; k < types.size(); ++k) {
    args.push_back({{static_cast<std::int64_t>(total)}, 0, 0, types[k], lists[k]});
  }
  return args;
}

std::vector<Argument> sample_arguments(const OpDef& op, const std::vector<DType>& types,
                                       const std::vector<Shape>& shapes) {
  std::vector<Argument> args;
  for (std::size_t k = 0; k < types.size(); ++k) {
    SampleRange range = op.samples[k];
    // Widens the range for integers: 0.5 to 4 would only be 1 to 4.
    if (types[k] == u32) range = {std::max(range.lo, 0.0), std::max(range.hi, 1.0)};
    args.push_back({shapes[k % shapes.size()], range.lo, range.hi, types[k], {}});
  }
  return args;
}

void add_cases(const OpDef& op, const std::vector<DType>& types, DType to,
               std::vector<OpCase>& cases) {
  std::string name = std::string(op.name) + "_" + std::string(to_string(types.back()));
  if (op.arity == 1 && to != types.back()) name += "_to_" + std::string(to_string(to));
  const Apply apply = public_function(op.name, to);
  const bool real = types.back() == f32 && op.grad != nullptr && to == f32 && &op != &ops::detach;
  cases.push_back({name, sample_arguments(op, types, {{3, 5}}), apply, real, false});
  if (types.size() > 1) {
    cases.push_back({name + "_broadcast", sample_arguments(op, types, {{4, 1, 3}, {2, 1}, {}}),
                     apply, real, false});
    cases.push_back(
        {name + "_scalar", sample_arguments(op, types, {{}, {2, 3}}), apply, real, false});
  }
  // Four operands would have 9^4 combinations. The only such op, philox, has no edge values.
  if (types.size() < 4) {
    cases.push_back({name + "_edges", edge_arguments(types), apply, false, true});
  }
}

}  // namespace

std::vector<OpCase> pointwise_cases() {
  std::vector<OpCase> cases;
  for (const OpDef* op : pointwise_ops()) {
    const bool converts = op == &ops::cast || op == &ops::bitcast;
    for (const DType dtype : kTypes) {
      if (!takes(*op, dtype)) continue;
      std::vector<DType> types(static_cast<std::size_t>(op->arity), dtype);
      if (op->arity == 3) types[0] = boolean;
      if (!converts) {
        add_cases(*op, types, dtype, cases);
        continue;
      }
      for (const DType to : kTypes) {
        if (takes(*op, to)) add_cases(*op, types, to, cases);
      }
    }
  }
  return cases;
}

}  // namespace tensorgrad::testing
