// SPDX-License-Identifier: MIT
#include "errors/expect_error.h"

#include "support/temp_dir.h"

namespace tensorgrad::testing {
namespace {

SourceLocation faulty;

}  // namespace

void mark_faulty(const SourceLocation& location) { faulty = location; }

void expect_error(const std::type_info& type, const ::testing::Matcher<std::string>& message,
                  bool located, const SourceLocation& here, const std::function<void()>& body) {
  const ::testing::ScopedTrace trace(here.file, static_cast<int>(here.line), "EXPECT_ERROR");
  try {
    body();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(typeid(error).name(), type.name());
    EXPECT_THAT(error.message().substr(0, error.message().find('\n')), message);
    const SourceLocation want = located ? (faulty.known() ? faulty : here) : SourceLocation();
    EXPECT_STREQ(error.location().file, want.file);
    EXPECT_EQ(error.location().line, want.line);
    const std::string line = "\n  at " + to_string(error.location());
    EXPECT_EQ(std::string(error.what()).find(line) != std::string::npos, located) << error.what();
  }
  faulty = {};
}

std::string temporary(const std::string& name) {
  static const test::TempDir folder;
  return folder / name;
}

}  // namespace tensorgrad::testing
