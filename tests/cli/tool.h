// SPDX-License-Identifier: MIT
// Runs the tool tg as a process, on small datasets that the tests write.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tensorgrad::test {

struct ToolResult {
  int code = -1;  // exit code; 128 + n if killed by signal n
  std::string out, err;
};

// Returns the path of the tool, then its arguments.
std::vector<std::string> tool_words(const std::vector<std::string>& arguments);

// The tool as a background process.
class ToolProcess {
 public:
  // `folder` is the working directory and receives the output files.
  ToolProcess(const std::vector<std::string>& arguments, const std::filesystem::path& folder);
  ~ToolProcess();
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

  void signal(int number) const;
  ToolResult wait();

 private:
  std::filesystem::path out_, err_;
  pid_t pid_ = -1;
};

ToolResult run_tool(const std::vector<std::string>& arguments, const std::filesystem::path& folder);
// Runs the tool on a terminal with `columns` columns; `out` holds everything written to it.
ToolResult run_tool_on_terminal(const std::vector<std::string>& arguments,
                                const std::filesystem::path& folder, unsigned short columns);
// Forks as fork() does. A new terminal is the controlling terminal and the standard streams of the
// child; the parent reads and writes it through `terminal`. Does not use forkpty(), whose header
// differs between systems. Returns -1 on failure.
pid_t fork_on_terminal(int columns, int rows, int& terminal);

// A temporary folder, removed by the destructor.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }
  // Runs the tool in this folder.
  [[nodiscard]] ToolResult tg(const std::vector<std::string>& arguments) const {
    return run_tool(arguments, path_);
  }

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);

// Writes 5x5 images of three classes as IDX files: a bright row, a bright column or a bright
// diagonal, with noise. 60 are for training, 25 for testing.
void write_image_folder(const std::filesystem::path& folder);
// Writes 6x6 PNG images in class folders "columns" and "rows", 20 each.
void write_class_folder(const std::filesystem::path& folder);
// Writes one IDX file of u8.
void write_idx(const std::filesystem::path& path, const std::vector<std::uint32_t>& shape,
               const std::vector<std::uint8_t>& bytes);
// Returns a table "width,height,kind" of 80 rows: small and large things.
std::string table_text(bool with_labels = true);

}  // namespace tensorgrad::test
