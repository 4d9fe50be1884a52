// SPDX-License-Identifier: MIT
// What a user's mistake must give: the type, the exact first line of the message, and the guilty
// line, which is marked in the test by a comment, "error", at its end.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

struct Net {
  nn::Linear fc{3, 2};
  TG_MODULE(fc)
};

// Compiles a Net for the CPU with inputs x f32[4,3], y f32[4,2] and i i32[4].
template <class Loss>
Trainer<Net> compiled(Loss loss, CompileOptions options = {.optimizer = optim::SGD{}}) {
  if (options.inputs.empty() && options.dataset.empty()) {
    options.inputs = {{"x", {4, 3}}, {"y", {4, 2}}, {"i", {4}, i32}};
  }
  if (options.device.kind == "auto") options.device.kind = "cpu";
  return compile(Net{}, loss, options);
}

inline std::string source_line(const char* file, unsigned number) {
  std::ifstream in(file);
  std::string line;
  for (unsigned i = 0; i < number && std::getline(in, line); ++i) {
  }
  return line;
}

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// `at_line` false: the mistake is not one of a line (a file's, a run-time value's).
template <class Expected>
void expect_mistake(const std::string& message, const std::function<void()>& body,
                    bool at_line = true, Loc here = Loc::current()) {
  SCOPED_TRACE("at line " + std::to_string(here.line()));
  try {
    body();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Expected& error) {
    EXPECT_EQ(first_line(error.what()), message);
    EXPECT_EQ(error.site().known(), at_line) << error.what();
    if (!at_line || !error.site().known()) return;
    EXPECT_EQ(std::string(error.site().file), here.file_name());
    EXPECT_LE(std::abs(static_cast<int>(error.site().line) - static_cast<int>(here.line())), 20);
    EXPECT_TRUE(source_line(error.site().file, error.site().line).ends_with("// error"))
        << error.what();
    EXPECT_NE(std::string(error.what()).find("\n  at "), std::string::npos);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type of error: " << error.what();
  }
}

// The mistake is made while a function of a Net is traced.
template <class Expected, class Loss>
void expect_in_trace(const std::string& message, Loss loss, Loc here = Loc::current()) {
  expect_mistake<Expected>(message, [&] { static_cast<void>(compiled(loss)); }, true, here);
}

}  // namespace tensorgrad::testing
