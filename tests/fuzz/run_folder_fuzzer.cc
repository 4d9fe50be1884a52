// SPDX-License-Identifier: MIT
// libFuzzer: reads run.json and metrics.jsonl of the tool tg. May fail with a UserError.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "classify/settings.h"
#include "lm/settings.h"
#include "read_or_refuse.h"
#include "run/metrics.h"

namespace cli = tensorgrad::cli;

namespace {

// Uses a file system in memory if there is one.
std::string make_folder() {
  const std::string shared = "/dev/shm";
  const std::filesystem::path top = std::filesystem::exists(shared)
                                        ? std::filesystem::path(shared)
                                        : std::filesystem::temp_directory_path();
  static std::string folder = (top / ("tensorgrad-fuzz-" + std::to_string(::getpid()))).string();
  std::filesystem::create_directories(folder);
  std::atexit([] { std::filesystem::remove_all(folder); });
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string folder = make_folder();
  for (const char* const name : {"/run.json", "/metrics.jsonl"}) {
    std::FILE* const file = std::fopen((folder + name).c_str(), "wb");
    if (file == nullptr) std::abort();
    std::fwrite(data, 1, size, file);
    std::fclose(file);
  }
  tensorgrad::testing::read_or_refuse([&] { static_cast<void>(cli::read_run(folder)); });
  tensorgrad::testing::read_or_refuse([&] { static_cast<void>(cli::read_lm_run(folder)); });
  tensorgrad::testing::read_or_refuse(
      [&] { static_cast<void>(cli::read_history(folder + "/metrics.jsonl")); });
  return 0;
}
