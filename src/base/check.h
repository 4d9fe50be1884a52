// SPDX-License-Identifier: MIT
// CHECK tests an invariant of the library. If it does not hold, it throws InternalError; it never
// aborts.
#pragma once

#include <string>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& detail);

}  // namespace tensorgrad::inline TENSORGRAD_ABI

#define CHECK(condition, ...)                                                                    \
  do {                                                                                           \
    if (!(condition)) ::tensorgrad::check_failed(#condition, __FILE__, __LINE__, {__VA_ARGS__}); \
  } while (false)

#define UNREACHABLE(...) \
  ::tensorgrad::check_failed("unreachable", __FILE__, __LINE__, {__VA_ARGS__})
