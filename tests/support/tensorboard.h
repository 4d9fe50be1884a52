// SPDX-License-Identifier: MIT
// Reads event files with the Python package tensorboard.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tensorgrad::testing {

struct EventScalar {
  std::int64_t step = 0;
  double value = 0;
  double seconds = 0;  // since 1970
};

// Returns the scalars in the event files of a folder by their tags. Fails the test if tensorboard
// cannot read them.
std::map<std::string, std::vector<EventScalar>> read_events(const std::string& folder);

}  // namespace tensorgrad::testing
