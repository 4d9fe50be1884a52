// SPDX-License-Identifier: MIT
// Adds the caller's source location to errors of calls that are not ops.
#pragma once

#include <utility>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns the result of `call`. Sets the location of an Error that has none.
template <class Call>
decltype(auto) with_source_location(const SourceLocation& location, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (Error& error) {
    error.set_location(location);
    throw;
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
