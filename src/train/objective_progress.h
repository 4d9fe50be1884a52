// SPDX-License-Identifier: MIT
// Progress of an objective, without parameters and states.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tensorgrad/optim/schedule.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

struct Progress {
  std::int64_t step = 0, epoch = 0, position = 0, schedule_start = 0;
  Schedule schedule = 0.0;
  std::map<std::string, double> scalars;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
