// SPDX-License-Identifier: MIT
// The message of an expected error, without and with its location.
#pragma once

#include <string>

#include "tensorgrad/error.h"

namespace tensorgrad::test {

// Returns the message of the E that `call` throws, without its location, or "no error".
template <class E = UserError, class Call>
std::string message_of(const Call& call) {
  try {
    static_cast<void>(call());
  } catch (const E& error) {
    return error.message();
  }
  return "no error";
}

// Returns what() of the E that `call` throws, which ends with its location, or "no error".
template <class E = UserError, class Call>
std::string what_of(const Call& call) {
  try {
    static_cast<void>(call());
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tensorgrad::test
