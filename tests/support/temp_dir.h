// SPDX-License-Identifier: MIT
// Temporary folders for tests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

namespace tensorgrad::test {

// A unique folder, removed when destroyed. Other tests and other builds may run at the same time.
class TempDir {
 public:
  TempDir() {
    static int next = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("tensorgrad_test_" + std::to_string(::getpid()) + "_" + std::to_string(next++));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).generic_string();
  }
  [[nodiscard]] std::string str() const { return path_.generic_string(); }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tensorgrad::test
