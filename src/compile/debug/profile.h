// SPDX-License-Identifier: MIT
// Turns a program and the times of its launches into tensorgrad/train/profile.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// `runs` has, for each run of the program, the timing of each launch.
Profile make_profile(const DeviceInfo& device, const Program& program,
                     const std::vector<PassProfile>& passes,
                     const std::vector<std::vector<LaunchTiming>>& runs);

// Returns a table with a header, a line per launch whose name `wanted` accepts (default: all), and
// the total. With `ops`, a second line per launch lists its ops and location.
std::string launch_table(const Profile& profile, bool ops,
                         const std::function<bool(const std::string& name)>& wanted = {});

// Measures a copy and matrix products, of increasing sizes until they take long enough. Returns
// zeros for the null device. Throws DeviceError if there is not enough memory.
DevicePeaks measure_peaks(const std::shared_ptr<Device>& device);

// Returns operations per byte moved ("12.3"), or an empty string if either is 0.
std::string intensity_text(std::int64_t flops, std::int64_t bytes);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
