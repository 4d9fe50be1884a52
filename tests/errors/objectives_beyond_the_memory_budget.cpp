// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objectives_beyond_the_memory_budget, UserError) {
  const auto objectives = two_objectives();
  const std::int64_t need = compiled(objectives).report().peak_bytes;
  // error: memory budget: the objectives need # bytes in total, the budget is #
  compiled(objectives, need - 1);
}

}  // namespace tensorgrad::testing
