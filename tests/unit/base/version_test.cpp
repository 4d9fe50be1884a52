// SPDX-License-Identifier: MIT
// The parts of the version agree.
#include "tensorgrad/version.h"

#include <gtest/gtest.h>

#include <string>

namespace tensorgrad::testing {
namespace {

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

TEST(Version, StringAndNamespaceAgreeWithNumbers) {
  const std::string major = std::to_string(TENSORGRAD_VERSION_MAJOR);
  const std::string minor = std::to_string(TENSORGRAD_VERSION_MINOR);
  const std::string patch = std::to_string(TENSORGRAD_VERSION_PATCH);
  EXPECT_EQ(TENSORGRAD_VERSION_STRING, major + "." + minor + "." + patch);
  EXPECT_EQ(TEXT(TENSORGRAD_ABI), "v" + major + "_" + minor);
}

}  // namespace
}  // namespace tensorgrad::testing
