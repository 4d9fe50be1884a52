// SPDX-License-Identifier: MIT
#include "support/dump.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

namespace fs = std::filesystem;

std::string without_groups(const std::string& text) {
  std::istringstream in(text);
  std::string out, line;
  while (std::getline(in, line)) out += line.substr(0, line.find("  // group ")) + "\n";
  return out;
}

bool same(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.type == b.type && a.attrs == b.attrs &&
         std::string(a.location.file) == b.location.file && a.location.line == b.location.line &&
         a.origin == b.origin;
}

}  // namespace

ScratchFolder::ScratchFolder(const std::string& name)
    : path_(fs::temp_directory_path() / ("tensorgrad_" + name + std::to_string(getpid()))) {
  fs::remove_all(path_);
  fs::create_directories(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void expect_round_trips(const fs::path& folder) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".ir") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const Graph graph = parse(text.str(), entry.path().string(), find_op);
    verify(graph);
    EXPECT_EQ(print(graph), without_groups(text.str())) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 5) << "graphs, one a pass, in " << folder;
}

void expect_round_trip(const Graph& graph, const std::string& note) {
  const std::string text = print(graph);
  const Graph read = parse(text, "text", find_op);
  EXPECT_EQ(print(read), without_groups(text)) << note;
  EXPECT_EQ(hash(read), hash(graph)) << note;
  ASSERT_EQ(read.size(), graph.size()) << note;
  for (ValueId id = 0; id < graph.size(); ++id) {
    EXPECT_TRUE(same(read[id], graph[id])) << note << ", %" << id << " of\n" << text;
  }
}

}  // namespace tensorgrad::testing
