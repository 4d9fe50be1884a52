// SPDX-License-Identifier: MIT
// The text of errors, shapes and element types.
#include "tensorgrad/error.h"

#include <gtest/gtest.h>

#include <source_location>
#include <string>
#include <type_traits>

#include "base/check.h"
#include "tensorgrad/types.h"

namespace tensorgrad {
namespace {

TEST(SourceLocation, unknown_without_a_line) {
  EXPECT_FALSE(SourceLocation().known());
  EXPECT_EQ(to_string(SourceLocation()), "(unknown line)");
}

TEST(SourceLocation, takes_file_and_line_of_a_source_location) {
  const auto here = std::source_location::current();
  const SourceLocation location = here;
  EXPECT_TRUE(location.known());
  EXPECT_EQ(to_string(location), std::string(here.file_name()) + ":" + std::to_string(here.line()));
}

SourceLocation location_of_call(SourceLocation location = SourceLocation::current()) {
  return location;
}

TEST(SourceLocation, as_a_default_argument_is_the_line_of_the_call) {
  const SourceLocation location = location_of_call();
  EXPECT_EQ(location.line, static_cast<unsigned>(__LINE__ - 1));
  EXPECT_STREQ(location.file, __FILE__);
  EXPECT_EQ(location_of_call({"mlp.ts", 7}).line, 7U);
}

TEST(Error, what_is_only_the_message_without_location_and_context) {
  const Error error("add: shapes differ");
  EXPECT_STREQ(error.what(), "add: shapes differ");
  EXPECT_FALSE(error.location().known());
}

TEST(Error, what_names_the_location_then_contexts_innermost_first) {
  Error error("add: shapes differ", SourceLocation("mlp.cpp", 41));
  error.add_context("while fusing group 7 (gelu)");
  error.add_context("while compiling the step");
  EXPECT_STREQ(error.what(),
               "add: shapes differ\n  at mlp.cpp:41\n  - while fusing group 7 (gelu)\n"
               "  - while compiling the step");
  EXPECT_EQ(error.message(), "add: shapes differ");
}

TEST(Error, location_is_set_only_once) {
  Error error("bad");
  error.set_location(SourceLocation("first.cpp", 1));
  error.set_location(SourceLocation("second.cpp", 2));
  EXPECT_STREQ(error.what(), "bad\n  at first.cpp:1");
}

TEST(Error, a_copy_keeps_its_text_when_the_original_is_gone) {
  std::string text;
  {
    Error original(std::string(100, 'x'), SourceLocation("a.cpp", 3));
    const Error copy = original;
    original.add_context("later");
    text = copy.what();
  }
  EXPECT_EQ(text, std::string(100, 'x') + "\n  at a.cpp:3");
}

TEST(Error, classes_derive_from_user_error) {
  static_assert(std::is_base_of_v<UserError, ShapeError>);
  static_assert(std::is_base_of_v<UserError, DtypeError>);
  static_assert(std::is_base_of_v<UserError, IoError>);
  static_assert(std::is_base_of_v<DeviceError, DeviceLostError>);
  static_assert(!std::is_base_of_v<UserError, InternalError>);
  EXPECT_THROW(throw DeviceLostError("gone"), UserError);
}

TEST(Check, throws_internal_error_with_condition_location_and_detail) {
  const int line = __LINE__ + 2;
  try {
    CHECK(1 + 1 == 3, "sums are " + std::to_string(2));
    FAIL() << "CHECK did not throw";
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("1 + 1 == 3 does not hold: sums are 2"), std::string::npos) << text;
    EXPECT_NE(text.find("error_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  }
}

TEST(Shape, text_and_number_of_elements) {
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(numel(Shape{}), 1);
  EXPECT_EQ(to_string(Shape{64, 32}), "[64,32]");
  EXPECT_EQ(numel(Shape{64, 32}), 2048);
  EXPECT_EQ(numel(Shape{1 << 20, 1 << 20}), std::int64_t{1} << 40);
}

TEST(DType, text) {
  EXPECT_EQ(to_string(f32), "f32");
  EXPECT_EQ(to_string(i32), "i32");
  EXPECT_EQ(to_string(u32), "u32");
  EXPECT_EQ(to_string(boolean), "bool");
}

}  // namespace
}  // namespace tensorgrad
