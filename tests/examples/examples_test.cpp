// SPDX-License-Identifier: MIT
// Every example runs for some steps and says so; what its compilation dumps can be read back.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/dump.h"

namespace tensorgrad::testing {
namespace {

std::vector<std::string> examples() {
  std::vector<std::string> programs;
  std::istringstream list(TENSORGRAD_EXAMPLES);
  for (std::string program; std::getline(list, program, ':');) programs.push_back(program);
  return programs;
}

class Example : public ::testing::TestWithParam<std::string> {};

TEST_P(Example, trains_for_some_steps_on_the_cpu) {
  const ScratchFolder folder("example");
  const ScopedEnv env("TENSORGRAD_DUMP", folder.path() / "dump");
  const std::string output = folder.path() / "output.txt";
  const std::string command = "'" + GetParam() + "' 201 cpu > '" + output + "' 2>&1";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): a path of our own
  std::ostringstream text;
  text << std::ifstream(output).rdbuf();
  EXPECT_EQ(status, 0) << text.str();
  EXPECT_NE(text.str().find("after 201 steps"), std::string::npos) << text.str();
  EXPECT_EQ(text.str().find("nan"), std::string::npos) << text.str();
  expect_round_trips(folder.path());
}

INSTANTIATE_TEST_SUITE_P(Examples, Example, ::testing::ValuesIn(examples()), [](const auto& each) {
  return std::filesystem::path(each.param).filename().string();
});

}  // namespace
}  // namespace tensorgrad::testing
