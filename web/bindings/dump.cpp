// SPDX-License-Identifier: MIT
// What a program consists of: the files that compiling writes (TENSORGRAD_DUMP), in memory.
#include "dump.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tensorgrad::web {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSwitch = "TENSORGRAD_DUMP";
const fs::path kFolder = "/dump";

}  // namespace

std::map<std::string, std::string> dumped(const std::function<void()>& compile) {
  struct Folder {
    Folder() { ::setenv(kSwitch, kFolder.c_str(), 1); }
    ~Folder() {
      ::unsetenv(kSwitch);
      std::error_code ignored;
      fs::remove_all(kFolder, ignored);
    }
  } const folder;
  compile();
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& program : fs::directory_iterator(kFolder)) {
    for (const fs::directory_entry& each : fs::recursive_directory_iterator(program)) {
      if (!each.is_regular_file()) continue;
      std::ifstream in(each.path(), std::ios::binary);
      files[fs::relative(each.path(), program).string()] =
          std::string(std::istreambuf_iterator<char>(in), {});
    }
  }
  return files;
}

}  // namespace tensorgrad::web
