// SPDX-License-Identifier: MIT
// Counts what the program allocates with `new`: not under sanitizers, which have a `new` of their
// own.
#pragma once

#include <cstdint>

namespace tensorgrad::testing {

std::int64_t allocations();  // so far

}  // namespace tensorgrad::testing
