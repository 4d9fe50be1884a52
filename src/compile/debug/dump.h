// SPDX-License-Identifier: MIT
// TENSORGRAD_DUMP: a folder per compilation with the graph after each pass, the plan, pictures and
// kernels. All files except timeline.json depend only on the model.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "plan/plan.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct MemoryMap;

// File contents by path in the folder, e.g. "kernels/003_gelu.wgsl".
using DumpedFiles = std::map<std::string, std::string>;

// RAII guard: compilations of this thread are dumped into memory, whether or not TENSORGRAD_DUMP is
// set. Used by web pages, which have no folders.
class DumpToMemory {
 public:
  DumpToMemory();
  ~DumpToMemory();
  DumpToMemory(const DumpToMemory&) = delete;
  DumpToMemory& operator=(const DumpToMemory&) = delete;
  [[nodiscard]] const DumpedFiles& files() const { return *files_; }

 private:
  std::shared_ptr<DumpedFiles> files_, before_;
};

class DumpFolder {
 public:
  // Creates a folder, named by the next free number and the program's name. Returns null if
  // TENSORGRAD_DUMP is not set. Throws IoError if the folder cannot be created.
  static std::shared_ptr<DumpFolder> open(const std::string& name);

  // Writes the next numbered file: 00_trace.ir, 01_autodiff.ir ...
  void graph(const std::string& pass, const Graph& graph);
  void program(const Graph& fused, const PlanOptions& options, const Program& program,
               const std::vector<PassProfile>& passes);
  // Overwrites timeline.json.
  void timings(const Profile& profile);

 private:
  explicit DumpFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  explicit DumpFolder(std::shared_ptr<DumpedFiles> memory) : memory_(std::move(memory)) {}
  void write(const std::string& file, const std::string& text) const;

  std::filesystem::path folder_;
  std::shared_ptr<DumpedFiles> memory_;  // used instead of the folder, if set
  int graphs_ = 0;
};

// Returns the graph for `dot -Tsvg`, with groups as boxes around their nodes and leaves.
std::string graph_dot(const Graph& fused);
// Returns a page with the launches in order. It needs no other file and no network.
std::string graph_html(const Program& program, const std::vector<std::string>& kernels);
// Returns a picture of buffers over launches. Each value is a box from the launch that computes it
// to its last reader.
std::string memory_svg(const Graph& fused, const MemoryMap& map, const Program& program);

// Escapes `text` for element content and attributes.
std::string xml_text(std::string_view text);
// Returns "512 B", "12.0 KiB" or "3.5 MiB".
std::string bytes_text(std::int64_t bytes);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
