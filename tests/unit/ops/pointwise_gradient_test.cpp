// SPDX-License-Identifier: MIT
// First and second order gradients of the pointwise ops, compared with finite differences in
// double, and with PyTorch at points that are not differentiable.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backend/reference/interpreter.h"
#include "kernel/pointwise.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "passes/autodiff.h"

namespace tensorgrad {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Values = std::vector<double>;

// y = op(x0, x1, ...) for f32 operands (where: preceded by a bool), with its first and second order
// gradients.
class Derivatives {
 public:
  Derivatives(const OpDef& op, std::size_t count) {
    const Shape shape = {static_cast<std::int64_t>(count)};
    for (int i = 0; i < op.arity; ++i) {
      const DType dtype = op.arity == 3 && i == 0 ? DType::kBool : DType::kF32;
      inputs_.push_back(op::apply(builder_, ops::input, {},
                                  {{"name", std::to_string(i)},
                                   {"dtype", static_cast<std::int64_t>(dtype)},
                                   {"shape", shape}}));
      if (dtype == DType::kF32) wrt_.push_back(inputs_.back().id);
    }
    Attrs attrs;
    if (&op == &ops::cast) attrs.set("dtype", static_cast<std::int64_t>(DType::kF32));
    y_ = op::apply(builder_, op, inputs_, attrs);
    first_ = autodiff(graph_, op::sum(y_, {0}).id, wrt_);
    for (const ValueId gradient : first_) {
      second_.push_back(autodiff(graph_, op::sum({&builder_, gradient}, {0}).id, wrt_));
    }
  }

  [[nodiscard]] std::size_t operands() const { return wrt_.size(); }
  Values y(const std::vector<Values>& x) { return value(y_.id, x); }
  // dy / dx[i], and d^2 y / (dx[i] dx[j])
  Values first(std::size_t i, const std::vector<Values>& x) { return value(first_[i], x); }
  Values second(std::size_t i, std::size_t j, const std::vector<Values>& x) {
    return value(second_[i][j], x);
  }

 private:
  Values value(ValueId id, const std::vector<Values>& x) {
    InterpretOptions options;
    options.leaf = [&](const Node& leaf) {
      return x[static_cast<std::size_t>(std::stoi(leaf.attrs.text("name")))];
    };
    return interpret(graph_, options)[static_cast<std::size_t>(id)].data;
  }

  Graph graph_;
  Builder builder_{graph_, {}, "test"};
  std::vector<Expr> inputs_;
  std::vector<ValueId> wrt_;
  Expr y_;
  std::vector<ValueId> first_;
  std::vector<std::vector<ValueId>> second_;
};

bool differentiable(const OpDef& op) {
  return op.grad != nullptr && op.code->block(DType::kF32, DType::kF32) != nullptr;
}

// Returns f at x with the elements of operand `k` shifted by h.
template <class F>
Values moved(F f, std::vector<Values> x, std::size_t k, double h) {
  for (double& v : x[k]) v += h;
  return f(x);
}

template <class F>
void expect_slope(const std::string& what, const Values& given, F f, const std::vector<Values>& x,
                  std::size_t k) {
  constexpr double kStep = 1e-5;
  const Values above = moved(f, x, k, kStep), below = moved(f, x, k, -kStep);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const double slope = (above[i] - below[i]) / (2 * kStep);
    EXPECT_NEAR(given[i], slope, 1e-6 * std::max(1.0, std::fabs(slope)))
        << what << " at " << x[k][i];
  }
}

TEST(PointwiseGradient, first_and_second_order_match_differences) {
  constexpr std::size_t kCount = 16;
  std::mt19937 random(4);
  for (const OpDef* op : pointwise_ops()) {
    if (!differentiable(*op) || op == &ops::detach) continue;
    Derivatives d(*op, kCount);
    std::vector<Values> x;
    for (const SampleRange& range :
         std::span(op->samples).first(static_cast<std::size_t>(op->arity))) {
      std::uniform_real_distribution<double> sample(range.lo, range.hi);
      x.emplace_back(kCount);
      for (double& v : x.back()) v = sample(random);
    }
    const std::size_t skip = x.size() - d.operands();
    if (skip == 1)
      for (double& v : x[0]) v = v > 0.5 ? 1 : 0;
    for (std::size_t i = 0; i < d.operands(); ++i) {
      const std::string name = std::string(op->name) + " d" + std::to_string(i);
      expect_slope(name, d.first(i, x), [&](auto& at) { return d.y(at); }, x, i + skip);
      for (std::size_t j = 0; j < d.operands(); ++j) {
        expect_slope(
            name + " d" + std::to_string(j), d.second(i, j, x),
            [&](auto& at) { return d.first(i, at); }, x, j + skip);
      }
    }
  }
}

TEST(PointwiseGradient, only_predicates_and_integers_have_none) {
  for (const OpDef* op : {&ops::lt, &ops::eq, &ops::isnan, &ops::logical_and, &ops::bitwise_and,
                          &ops::bitwise_left_shift, &ops::bitcast, &ops::philox}) {
    EXPECT_EQ(op->grad, nullptr) << op->name;
  }
  for (const OpDef* op : {&ops::floor, &ops::sign, &ops::detach, &ops::where, &ops::cast}) {
    EXPECT_NE(op->grad, nullptr) << op->name;
  }
}

// Returns the gradients with respect to all f32 operands at one point.
Values gradients(const OpDef& op, const Values& at) {
  Derivatives d(op, 1);
  std::vector<Values> x;
  for (const double v : at) x.push_back({v});
  Values all;
  for (std::size_t i = 0; i < d.operands(); ++i) all.push_back(d.first(i, x)[0]);
  return all;
}

TEST(PointwiseGradient, matches_pytorch_at_corners) {
  EXPECT_EQ(gradients(ops::abs, {0}), Values{0});
  EXPECT_EQ(gradients(ops::relu, {0}), Values{0});
  EXPECT_EQ(gradients(ops::detach, {3}), Values{0});
  EXPECT_EQ(gradients(ops::maximum, {2, 2}), (Values{0.5, 0.5}));
  EXPECT_EQ(gradients(ops::minimum, {2, 2}), (Values{0.5, 0.5}));
  EXPECT_EQ(gradients(ops::maximum, {kNan, 2}), (Values{1, 1}));
  EXPECT_EQ(gradients(ops::atan2, {0, 0}), (Values{0, 0}));
  EXPECT_EQ(gradients(ops::fmod, {7, 2}), (Values{1, -3}));
  EXPECT_EQ(gradients(ops::sqrt, {0}), Values{std::numeric_limits<double>::infinity()});
}

TEST(PointwiseGradient, of_pow_is_finite_where_defined) {
  EXPECT_EQ(gradients(ops::pow, {0, 0}), (Values{0, 0}));
  EXPECT_EQ(gradients(ops::pow, {0, 2}), (Values{0, 0}));
  EXPECT_EQ(gradients(ops::pow, {0, 1}), (Values{1, 0}));
  EXPECT_EQ(gradients(ops::pow, {3, 0})[0], 0);
  EXPECT_NEAR(gradients(ops::pow, {3, 0})[1], std::log(3.0), 1e-12);
  EXPECT_EQ(gradients(ops::pow, {-2, 3})[0], 12);
  Derivatives d(ops::pow, 1);
  EXPECT_EQ(d.second(0, 0, {{0}, {0}}), Values{0});
  EXPECT_EQ(d.second(0, 0, {{0}, {2}}), Values{2});
}

}  // namespace
}  // namespace tensorgrad
