// SPDX-License-Identifier: MIT
// From a program and the times of its launches to what people read of them:
// tensorgrad/train/profile.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// `runs` are the timings of several runs of the program, one for each launch.
Profile profile_of(const DeviceInfo& device, const Program& program,
                   const std::vector<PassProfile>& passes,
                   const std::vector<std::vector<LaunchTiming>>& runs);

// The table's head, a line for each launch whose name `wanted` takes (all if it is none), the sum.
// With `ops`, a second line for each says what is fused, and where it comes from.
std::string launch_table(const Profile& profile, bool ops,
                         const std::function<bool(const std::string& name)>& wanted = {});

// Measures a copy and products of matrices, larger ones until they take long enough. Nothing of the
// null device. Throws DeviceError where there is no room.
DeviceRates measure_rates(const std::shared_ptr<Device>& device);

// "12.3" operations per byte moved; empty where the plan counts none.
std::string intensity_text(std::int64_t flops, std::int64_t bytes);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
