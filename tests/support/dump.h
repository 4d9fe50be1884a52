// SPDX-License-Identifier: MIT
// Compiles with TENSORGRAD_DUMP set, and checks the IR text that every pass writes.
#pragma once

#include <filesystem>
#include <string>

#include "support/graph_builder.h"

namespace tensorgrad::testing {

// A folder that is initially empty, and removed when destroyed.
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

// Checks every .ir file in `folder`: it parses, the graph is valid, and prints as the same text
// except for group numbers, which are comments. Fails if there are fewer than five files.
void expect_round_trips(const std::filesystem::path& folder);

// Checks that parse(print(graph)) is the graph.
void expect_round_trip(const Graph& graph, const std::string& note);

}  // namespace tensorgrad::testing
