// SPDX-License-Identifier: MIT
// Tests of user errors: what is wrong, and what the library says about it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <typeinfo>

#include "tensorgrad/error.h"

// Expects `expression` to throw an error of exactly this type with this message, located at this
// line, or at that of the FAULTY() that was evaluated since the last check. The message can be a
// matcher, such as StartsWith(). Only its first line is compared.
#define EXPECT_ERROR(expression, Type, message)                                \
  ::tensorgrad::testing::expect_error(typeid(Type), message, true,             \
                                      ::tensorgrad::SourceLocation::current(), \
                                      [&] { static_cast<void>(expression); })

// The same for an error without a location, as those of file contents and of values at run time.
#define EXPECT_ERROR_WITHOUT_LINE(expression, Type, message)                   \
  ::tensorgrad::testing::expect_error(typeid(Type), message, false,            \
                                      ::tensorgrad::SourceLocation::current(), \
                                      [&] { static_cast<void>(expression); })

// Marks an expression in a traced function: EXPECT_ERROR() expects the error at this line.
#define FAULTY(expression) \
  (::tensorgrad::testing::mark_faulty(::tensorgrad::SourceLocation::current()), (expression))

namespace tensorgrad::testing {

using ::testing::MatchesRegex;
using ::testing::StartsWith;

void expect_error(const std::type_info& type, const ::testing::Matcher<std::string>& message,
                  bool located, const SourceLocation& here, const std::function<void()>& body);

void mark_faulty(const SourceLocation& location);

// Returns a path that no other process uses. It is removed when the process ends.
std::string temporary(const std::string& name);

}  // namespace tensorgrad::testing
