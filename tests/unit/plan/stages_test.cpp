// SPDX-License-Identifier: MIT
// The order of groups of launches: which of them wait, and which run concurrently.
#include "plan/schedule.h"

#include <gtest/gtest.h>

namespace tensorgrad::testing {
namespace {

using Stages = std::vector<std::vector<int>>;

GroupWork work(std::set<int> before, int concurrent, double microseconds,
               std::set<std::int64_t> buffers = {}) {
  return {std::move(before), concurrent, microseconds, std::move(buffers)};
}

TEST(Stages, without_joining_keep_the_order_of_groups) {
  const std::vector<GroupWork> groups = {work({}, 1, 1), work({3}, 1, 1), work({}, 1, 1),
                                         work({0}, 1, 1)};
  EXPECT_EQ(order_schedule(groups, 0), (Stages{{0}, {2}, {3}, {1}}));
}

TEST(Stages, siblings_share_one_stage) {
  const std::vector<GroupWork> groups = {work({}, 1, 1), work({0}, 1, 1), work({0}, 1, 1),
                                         work({0}, 1, 1), work({1, 2, 3}, 1, 1)};
  EXPECT_EQ(order_schedule(groups, 8), (Stages{{0}, {1, 2, 3}, {4}}));
}

TEST(Stages, long_work_needed_at_the_end_is_deferred) {
  // 1 and 2 depend on the chain 0, 3, 4, 5 and take longer than its groups. Only 5 depends on them.
  const std::vector<GroupWork> groups = {work({}, 1, 1),  work({0}, 1, 8), work({3}, 1, 8),
                                         work({0}, 1, 1), work({3}, 1, 1), work({4, 1, 2}, 1, 1)};
  EXPECT_EQ(order_schedule(groups, 8), (Stages{{0}, {3}, {1, 2, 4}, {5}}));
}

TEST(Stages, long_work_is_delayed_more_if_launches_cost_more) {
  // From its start to the end, 0 takes 4 us and four launches, and 1 takes 9 us and two.
  const std::vector<GroupWork> groups = {work({}, 1, 1), work({}, 1, 8), work({0}, 1, 1),
                                         work({2}, 1, 1), work({1, 3}, 1, 1)};
  EXPECT_EQ(order_schedule(groups, 8, {.launch_microseconds = 2}), (Stages{{1, 0}, {2}, {3}, {4}}));
  EXPECT_EQ(order_schedule(groups, 8, {.launch_microseconds = 10}),
            (Stages{{0}, {1, 2}, {3}, {4}}));
}

TEST(Stages, large_work_and_other_classes_are_not_joined) {
  const std::vector<GroupWork> groups = {work({}, 1, 1), work({}, 0, 1), work({}, 2, 1),
                                         work({}, 1, 1), work({}, 2, 1)};
  EXPECT_EQ(order_schedule(groups, 8), (Stages{{0, 3}, {1}, {2, 4}}));
}

TEST(Stages, stay_within_the_binding_limit) {
  const std::vector<GroupWork> groups = {work({}, 1, 1, {1, 2}), work({}, 1, 1, {2, 3}),
                                         work({}, 1, 1, {4, 5}), work({}, 1, 1, {1, 3})};
  EXPECT_EQ(order_schedule(groups, 3), (Stages{{0, 1, 3}, {2}}));
}

TEST(Stages, of_a_cycle_are_empty) {
  EXPECT_TRUE(order_schedule({work({1}, 1, 1), work({0}, 1, 1)}, 8).empty());
  EXPECT_TRUE(order_schedule({work({1}, 1, 1), work({0}, 1, 1)}, 0).empty());
}

}  // namespace
}  // namespace tensorgrad::testing
