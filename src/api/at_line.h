// SPDX-License-Identifier: MIT
// Errors of calls that are not ops: they get the line of the call.
#pragma once

#include <utility>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// What `call` gives. An Error that knows no line of the user's gets this one.
template <class Call>
decltype(auto) at_line(const SourceLocation& location, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (Error& error) {
    error.set_location(location);
    throw;
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
