// SPDX-License-Identifier: MIT
// Every example reaches its result, in a short run where the whole takes long; its picture shows
// that; what its compilation dumps can be read back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "pictures.h"
#include "support/dump.h"
#include "support/sanitized.h"

namespace tensorgrad::testing {
namespace {

std::vector<std::string> examples() {
  std::vector<std::string> programs;
  std::istringstream list(TENSORGRAD_EXAMPLES);
  for (std::string program; std::getline(list, program, ':');) programs.push_back(program);
  return programs;
}

class Example : public ::testing::TestWithParam<std::string> {};

// These take seconds, and run whole, to the bound that docs/samples.md promises.
constexpr const char* kWhole[] = {"mlp_sin", "kan", "cartpole", "tic_tac_toe"};

// A sanitizer's runs take ten times as long; there, a few steps must do.
std::string length_of(const std::string& program) {
  if (kSanitized) return "--smoke";
  const std::string name = std::filesystem::path(program).filename().string();
  return std::find(std::begin(kWhole), std::end(kWhole), name) == std::end(kWhole) ? "--quick" : "";
}

void expect_result(const std::string& program, const std::string& options) {
  const ScratchFolder folder("example");
  const ScopedEnv env("TENSORGRAD_DUMP", folder.path() / "dump");
  const std::string output = folder.path() / "output.txt";
  const std::string command = "'" + program + "' " + options + " --device cpu --out '" +
                              folder.path().string() + "/made/by it' > '" + output + "' 2>&1";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): a path of our own
  std::ostringstream text;
  text << std::ifstream(output).rdbuf();
  EXPECT_EQ(status, 0) << text.str();
  EXPECT_NE(text.str().find("\nresult: "), std::string::npos) << text.str();
  EXPECT_FALSE(std::regex_search(text.str(), std::regex("\\bnan\\b"))) << text.str();
  expect_round_trips(folder.path());
  const std::string name = std::filesystem::path(program).filename().string();
  expect_picture(folder.path() / "made" / "by it", name, options.find("--smoke") == options.npos);
}

TEST_P(Example, trains_on_the_cpu_and_reaches_what_it_promises) {
  expect_result(GetParam(), length_of(GetParam()));
}

#ifndef TENSORGRAD_SANITIZED  // half a minute in which it does nothing that the small one does not
TEST(LargeExample, makemore_takes_a_few_steps) {
  for (const std::string& program : examples()) {
    if (program.ends_with("/makemore")) return expect_result(program, "--smoke --size large");
  }
  FAIL() << "there is no such example";
}
#endif

INSTANTIATE_TEST_SUITE_P(Examples, Example, ::testing::ValuesIn(examples()), [](const auto& each) {
  return std::filesystem::path(each.param).filename().string();
});

}  // namespace
}  // namespace tensorgrad::testing
