// SPDX-License-Identifier: MIT
// Passes over a row: one for each reduction that needs the result of another, and no more.
#include <gtest/gtest.h>

#include "kernel/row_plan.h"
#include "passes/fuse/fuse.h"
#include "plan/plan.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

RowPlan plan_of(const std::function<Tensor(const Tensor&)>& function) {
  GraphBuilder s;
  s.output("y", function(s.input({4, 16})));
  const Program program = plan(fuse(s.graph(), {}), {});
  EXPECT_EQ(program.launches.size(), 1U);
  EXPECT_TRUE(program.launches[0].is<RowLaunch>());
  return plan_rows(program.launches[0]);
}

TEST(RowPlan, one_reduction_takes_one_pass) {
  const RowPlan plan = plan_of([](const Tensor& x) { return sum(square(x), 1); });
  ASSERT_EQ(plan.passes.size(), 1U);
  EXPECT_EQ(plan.passes[0].reduces.size(), 1U);
  EXPECT_TRUE(plan.passes[0].stores.empty());
  EXPECT_EQ(plan.row_stores.size(), 1U);
}

TEST(RowPlan, epilogue_takes_no_extra_pass) {
  const RowPlan plan = plan_of([](const Tensor& x) { return sqrt(sum(square(x), 1)) + 1.0; });
  ASSERT_EQ(plan.passes.size(), 1U);
  EXPECT_EQ(plan.row_after.size(), 2U) << "the root and the sum; the 1 is there before";
}

TEST(RowPlan, softmax_takes_three_passes) {
  const RowPlan plan = plan_of([](const Tensor& x) { return softmax(x); });
  ASSERT_EQ(plan.passes.size(), 3U);
  EXPECT_EQ(plan.passes[0].reduces.size(), 1U);
  EXPECT_EQ(plan.passes[1].reduces.size(), 1U);
  EXPECT_TRUE(plan.passes[2].reduces.empty());
  EXPECT_EQ(plan.passes[2].stores.size(), 1U);
  EXPECT_TRUE(plan.row_stores.empty());
}

}  // namespace
}  // namespace tensorgrad::testing
