// SPDX-License-Identifier: MIT
// TENSORGRAD_DUMP: a folder per compile with the graph after each pass, the plan, pictures and
// kernels. All but timeline.json depends on the model alone.
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

// Files by their paths in the folder, for example "kernels/003_gelu.wgsl".
using DumpedFiles = std::map<std::string, std::string>;

// While this lives, what its thread compiles is dumped into memory, whether TENSORGRAD_DUMP is set
// or not. Pages do it, which have no folders.
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
  // A new folder, called by the next free number and the program's name; null where TENSORGRAD_DUMP
  // is not set. Throws IoError where it cannot be made.
  static std::shared_ptr<DumpFolder> open(const std::string& name);

  // The next numbered file: 00_trace.ir, 01_autodiff.ir ...
  void graph(const std::string& pass, const Graph& graph);
  void program(const Graph& fused, const PlanOptions& options, const Program& program,
               const std::vector<PassProfile>& passes);
  // Writes timeline.json anew.
  void timings(const Profile& profile);

 private:
  explicit DumpFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  explicit DumpFolder(std::shared_ptr<DumpedFiles> memory) : memory_(std::move(memory)) {}
  void write(const std::string& file, const std::string& text) const;

  std::filesystem::path folder_;
  std::shared_ptr<DumpedFiles> memory_;  // instead of the folder
  int graphs_ = 0;
};

// The files' texts.
// Groups as boxes, nodes and leaves in them; for `dot -Tsvg`.
std::string graph_dot(const Graph& fused);
// The launches in order, to click on; no other file and no network is needed.
std::string graph_html(const Program& program, const std::vector<std::string>& kernels);
// Buffers over launches: each value as a box from the launch that makes it to its last reader.
std::string memory_svg(const Graph& fused, const MemoryMap& map, const Program& program);

// `text` fit for element content and attributes.
std::string xml_text(std::string_view text);
// "512 B", "12.0 KiB", "3.5 MiB"
std::string bytes_text(std::int64_t bytes);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
