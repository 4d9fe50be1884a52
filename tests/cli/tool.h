// SPDX-License-Identifier: MIT
// Runs the tool tg as a process, on small data sets that the tests make.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tensorgrad::test {

struct ToolResult {
  int code = -1;  // exit code; 128 + n if signal n ended it
  std::string out, err;
};

// The tool in the background.
class ToolProcess {
 public:
  // `folder` is its working directory, and where its output is kept.
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
// The same with a terminal of so many columns in front of it; `out` has all that came there.
ToolResult run_tool_on_terminal(const std::vector<std::string>& arguments,
                                const std::filesystem::path& folder, unsigned short columns);

// A folder that goes away with the object.
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
  // Runs the tool in here.
  [[nodiscard]] ToolResult tg(const std::vector<std::string>& arguments) const {
    return run_tool(arguments, path_);
  }

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);

// 5x5 images of three classes in IDX files: a bright row, a bright column, a bright diagonal, with
// noise. 60 to train on, 25 to test with.
void write_image_folder(const std::filesystem::path& folder);
// 6x6 pictures by class, PNG, 20 each: "columns", "rows".
void write_class_folder(const std::filesystem::path& folder);
// One IDX file of u8.
void write_idx(const std::filesystem::path& path, const std::vector<std::uint32_t>& shape,
               const std::vector<std::uint8_t>& bytes);
// Rows of two numbers, "width,height,kind": small and large things; 80 rows.
std::string table_text(bool with_labels = true);

}  // namespace tensorgrad::test
