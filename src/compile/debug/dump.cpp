// SPDX-License-Identifier: MIT
// The dump folder and graph.dot.
#include "compile/debug/dump.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "base/env.h"
#include "base/numbers.h"
#include "base/os/files.h"
#include "base/path.h"
#include "codegen/wgsl/writer.h"
#include "compile/debug/memory_map.h"
#include "kernel/launch_text.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

namespace fs = std::filesystem;

thread_local std::shared_ptr<DumpedFiles> memory;  // of the innermost DumpToMemory

std::string padded(std::size_t number, std::size_t digits) {
  std::string text = std::to_string(number);
  return text.insert(0, digits - std::min(digits, text.size()), '0');
}

// Replaces all characters but letters, digits and '_', since origins are chosen by the user.
std::string file_word(std::string name) {
  const auto is_plain = [](unsigned char c) { return c == '_' || (c < 128 && std::isalnum(c)); };
  std::replace_if(name.begin(), name.end(), std::not_fn(is_plain), '_');
  return name;
}

// Returns a number above those of all entries of the folder, so that no older dump is overwritten.
unsigned next_number(const fs::path& folder) {
  unsigned next = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = utf8_text(entry.path().filename());
    unsigned number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && *end == '_') next = std::max(next, number + 1);
  }
  return next;
}

std::string dot_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string dot_node(const Graph& graph, ValueId id) {
  const Node& node = graph[id];
  std::string label = "%" + std::to_string(id) + " " + node.op->name;
  if (node.attrs.has("name")) label += " " + node.attrs.text("name");
  const std::string tip = (node.location.known() ? to_string(node.location) : "") +
                          (node.origin.empty() ? "" : " " + node.origin);
  return "v" + std::to_string(id) + " [label=\"" + dot_text(label) + "\\n" + to_string(node.type) +
         "\", tooltip=\"" + dot_text(tip) + "\"];\n";
}

}  // namespace

DumpToMemory::DumpToMemory()
    : files_(std::make_shared<DumpedFiles>()), before_(std::exchange(memory, files_)) {}
DumpToMemory::~DumpToMemory() { memory = before_; }

std::shared_ptr<DumpFolder> DumpFolder::open(const std::string& name) {
  if (memory) return std::shared_ptr<DumpFolder>(new DumpFolder(memory));
  const std::string folder = env("TENSORGRAD_DUMP");
  if (folder.empty()) return nullptr;
  static std::mutex mutex;  // concurrent compilations get different numbers
  const std::lock_guard lock(mutex);
  std::error_code error;
  fs::create_directories(utf8_path(folder), error);
  fs::path path;
  bool made = false;
  for (unsigned number = next_number(utf8_path(folder)); !error && !made; ++number) {
    path = utf8_path(folder) / (std::to_string(number) + "_" + name);
    made = fs::create_directory(path, error);  // false: another process created it first
  }
  if (made) fs::create_directory(path / "kernels", error);
  if (made && !error) fs::create_directory(path / "programs", error);
  if (error) {
    throw IoError((path.empty() ? folder : utf8_text(path)) +
                  ": the folder of TENSORGRAD_DUMP cannot be created: " + error.message());
  }
  return std::shared_ptr<DumpFolder>(new DumpFolder(path));
}

void DumpFolder::write(const std::string& file, const std::string& text) const {
  if (memory_) {
    (*memory_)[file] = text;
    return;
  }
  const std::string path = utf8_text(folder_ / utf8_path(file));
  const int fd = os::open_file(path, os::Open::kEmpty);
  const bool written =
      fd >= 0 && os::write_all(fd, std::as_bytes(std::span(text.data(), text.size()))) == 0;
  if (fd < 0 || !os::close_file(fd) || !written)
    throw IoError(path + ": cannot be written (TENSORGRAD_DUMP)");
}

void DumpFolder::graph(const std::string& pass, const Graph& graph) {
  write(padded(static_cast<std::size_t>(graphs_++), 2) + "_" + pass + ".ir", print(graph));
}

void DumpFolder::program(const Graph& fused, const PlanOptions& options, const Program& program,
                         const std::vector<PassProfile>& passes) {
  std::vector<std::string> kernels;
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const std::string file = padded(i, 3) + "_" + file_word(program.launches[i].name);
    kernels.push_back(emit_wgsl(program.launches[i]));
    write("kernels/" + file + ".wgsl", kernels.back());
    write("programs/" + file + ".txt", print(program, program.launches[i]));
  }
  write("99_plan.txt", print(program));
  write("graph.dot", graph_dot(fused));
  write("graph.html", graph_html(program, kernels));
  write("memory.svg", memory_svg(fused, memory_map(fused, options, program), program));
  Profile profile;
  profile.passes = passes;
  timings(profile);
}

void DumpFolder::timings(const Profile& profile) { write("timeline.json", profile.trace_events()); }

std::string graph_dot(const Graph& fused) {
  std::map<int, std::vector<ValueId>> groups;
  for (ValueId id = 0; id < fused.size(); ++id) groups[fused[id].group].push_back(id);
  std::string text =
      "digraph graph_after_fusing {\nnode [shape=box, fontname=monospace, fontsize=10];\n";
  for (const auto& [group, members] : groups) {
    if (group >= 0) {
      const std::string number = std::to_string(group);
      text += "subgraph cluster_";
      text += number;
      text += " { label=\"group ";
      text += number;
      text += "\";\n";
    }
    for (const ValueId id : members) text += dot_node(fused, id);
    if (group >= 0) text += "}\n";
  }
  for (ValueId id = 0; id < fused.size(); ++id) {
    for (const ValueId input : fused[id].inputs) {
      text += "v" + std::to_string(input) + " -> v" + std::to_string(id) + ";\n";
    }
  }
  for (std::size_t i = 0; i < fused.outputs.size(); ++i) {
    const std::string name = "out" + std::to_string(i);
    text += name + " [shape=oval, label=\"" + dot_text(fused.outputs[i].name) + "\"];\n";
    text += "v" + std::to_string(fused.outputs[i].value) + " -> " + name + ";\n";
  }
  for (const GraphUpdate& update : fused.updates) {
    text += "v" + std::to_string(update.value) + " -> v" + std::to_string(update.leaf) +
            " [style=dashed, constraint=false];\n";
  }
  return text + "}\n";
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 32 && c != '\n' ? '?' : c;
    }
  }
  return out;
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 10240) return std::to_string(bytes) + " B";
  if (bytes < (10 << 20)) return format_text("%.1f KiB", static_cast<double>(bytes) / 1024);
  return format_text("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
