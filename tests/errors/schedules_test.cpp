// SPDX-License-Identifier: MIT
// Mistakes with learning-rate schedules.
#include <cmath>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(ScheduleErrors, argument_out_of_range) {
  EXPECT_ERROR_WITHOUT_LINE(Schedule::linear(1, 0, 0), UserError,
                            "schedule linear: expected at least one step, got 0");
  EXPECT_ERROR_WITHOUT_LINE(Schedule::cosine(-1, 0, 5), UserError,
                            "schedule cosine: from: expected a number of at least 0, got -1");
  EXPECT_ERROR_WITHOUT_LINE(Schedule::cosine_restarts(1, 0, 5, 0), UserError,
                            "schedule cosine_restarts: expected a factor of at least 1, got 0");
  EXPECT_ERROR_WITHOUT_LINE(Schedule::one_cycle({.peak = 1, .steps = 5, .pct_start = 2}), UserError,
                            "schedule one_cycle: pct_start: expected 0 to 1, got 2.000000");
  EXPECT_ERROR_WITHOUT_LINE(
      Schedule::exponential(1, std::nan("")), UserError,
      "schedule exponential: gamma: expected a number of at least 0, got nan");
  EXPECT_ERROR_WITHOUT_LINE(Schedule::shift(-1, 1.0), UserError,
                            "schedule shift: expected at least 0, got -1");
}

TEST(ScheduleErrors, milestones_invalid) {
  EXPECT_ERROR_WITHOUT_LINE(Schedule::multi_step(1, {5, 3}, 0.1), UserError,
                            "schedule multi_step: the milestones must be ascending");
  EXPECT_ERROR_WITHOUT_LINE(Schedule::sequence({1.0, 2.0}, {0}), UserError,
                            "schedule sequence: the milestones must be ascending and at least 1");
  EXPECT_ERROR_WITHOUT_LINE(
      Schedule::sequence({1.0, 2.0}, {}), UserError,
      "schedule sequence: expected one milestone fewer than schedules, got 0 for 2 schedules");
}

}  // namespace tensorgrad::testing
