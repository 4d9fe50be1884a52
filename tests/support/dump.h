// SPDX-License-Identifier: MIT
// Compiles with TENSORGRAD_DUMP set, and looks at the IR text that every pass left.
#pragma once

#include <filesystem>
#include <string>

#include "support/sketch.h"

namespace tensorgrad::testing {

// A folder that is empty at first and gone at the end.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name);
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// For every .ir file below `folder`: it parses, the graph holds its invariants, and prints as the
// file reads (but for the numbers of groups, which are comments). Fails where there is none.
void expect_round_trips(const std::filesystem::path& folder);

// parse(print(graph)) is the graph.
void expect_round_trip(const Graph& graph, const std::string& note);

}  // namespace tensorgrad::testing
