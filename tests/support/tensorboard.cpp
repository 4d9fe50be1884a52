// SPDX-License-Identifier: MIT
#include "support/tensorboard.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/source_path.h"
#include "support/temp_dir.h"

namespace tensorgrad::testing {

std::map<std::string, std::vector<EventScalar>> read_events(const std::string& folder) {
  const test::TempDir said;
  const std::string command = "PYTHONPATH='" TENSORGRAD_TENSORBOARD_PACKAGES
                              ":" TENSORGRAD_ONNX_PACKAGES "' '" TENSORGRAD_PYTHON "' -B '" +
                              test::source_path("tests/support/read_events.py") + "' '" + folder +
                              "' > '" + (said / "out") + "' 2> '" + (said / "err") + "'";
  const int status = std::system(command.c_str());
  std::ostringstream errors;
  errors << std::ifstream(said / "err").rdbuf();
  EXPECT_EQ(status, 0) << command << '\n' << errors.str();
  std::map<std::string, std::vector<EventScalar>> scalars;
  std::ifstream in(said / "out");
  std::string line;
  while (std::getline(in, line) && line != "end") {
    std::istringstream fields(line);
    std::string tag, step, value, seconds;
    std::getline(fields, tag, '\t');
    std::getline(fields, step, '\t');
    std::getline(fields, value, '\t');
    std::getline(fields, seconds, '\t');
    scalars[tag].push_back({std::stoll(step), std::stod(value), std::stod(seconds)});
  }
  EXPECT_EQ(line, "end") << errors.str();
  return scalars;
}

}  // namespace tensorgrad::testing
