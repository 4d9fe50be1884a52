// SPDX-License-Identifier: MIT
// What the workloads that train have in common.
#pragma once

#include <string>

#include <tensorgrad/tensorgrad.h>

#include "measure.h"

namespace tensorgrad::bench {

DeviceOptions device_options(const Options& options, const std::string& device);

// A line with the time of a step and what the program is like.
void report(const std::string& workload, const std::string& mode, const TrainerBase& trainer,
            double us);
// Times `steps` steps at a time over the trainer's data, and reports that, and its launches if
// that is asked for.
void in_a_go(const Options& options, const std::string& workload, TrainerBase& trainer,
             int steps = 200);

}  // namespace tensorgrad::bench
