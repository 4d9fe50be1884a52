// SPDX-License-Identifier: MIT
// Valid values of environment variables.
#include "base/env.h"

#include <gtest/gtest.h>

#include <string>

#include "support/graph_builder.h"
#include "support/message_of.h"
#include "tensorgrad/error.h"

namespace tensorgrad {
namespace {

using testing::ScopedEnv;

TEST(Env, a_flag_is_0_or_1) {
  for (const auto& [value, expected] : {std::pair("", false), {"0", false}, {"1", true}}) {
    const ScopedEnv shadow("TENSORGRAD_SHADOW", value);
    EXPECT_EQ(env_flag("TENSORGRAD_SHADOW"), expected) << value;
  }
  for (const std::string value : {"true", "2", "11", " "}) {
    const ScopedEnv shadow("TENSORGRAD_SHADOW", value);
    EXPECT_EQ(test::message_of([] { env_flag("TENSORGRAD_SHADOW"); }),
              "TENSORGRAD_SHADOW: expected 0 or 1, got '" + value + "'");
  }
}

TEST(Env, debug_is_a_level_with_names_or_without) {
  const auto level = [](const std::string& value, const char* topic) {
    const ScopedEnv debug("TENSORGRAD_DEBUG", value);
    return debug_level(topic);
  };
  EXPECT_EQ(level("", "fuse"), 0);
  EXPECT_EQ(level("5", "fuse"), 5);
  EXPECT_EQ(level("3,fuse,cse", "cse"), 3);
  EXPECT_EQ(level("3,fuse", "cse"), 1);
  for (const std::string value : {"fuse", "fuse,3", "6", "-1", "33", ",", "3 ,fuse"}) {
    EXPECT_EQ(test::message_of([&] { level(value, ""); }),
              "TENSORGRAD_DEBUG: expected a level from 0 to 5, optionally with names as in "
              "'3,fuse', got '" +
                  value + "'");
  }
}

}  // namespace
}  // namespace tensorgrad
