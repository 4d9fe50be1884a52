// SPDX-License-Identifier: MIT
#include "options.h"

#include <cmath>
#include <cstdlib>

namespace tensorgrad::cli {

const CLI::Validator kPositive(
    [](std::string& text) {
      const double value = std::strtod(text.c_str(), nullptr);
      return value > 0 && std::isfinite(value) ? "" : "expected a number above 0, got " + text;
    },
    "NUMBER > 0");
const CLI::Validator kShare(
    [](std::string& text) {
      const double value = std::strtod(text.c_str(), nullptr);
      return value > 0 && value < 1 ? "" : "expected a fraction between 0 and 1, got " + text;
    },
    "0..1");

void add_adapter_options(CLI::App& command, DeviceOptions& device) {
  command.add_option("--adapter", device.adapter, "WebGPU adapter, by its number in `tg devices`")
      ->check(CLI::Range(0, 1000));
  command.add_flag("--allow-software", device.allow_software,
                   "Allow webgpu to use a software adapter");
  command.add_option("--tuning-cache", device.tuning_cache,
                     "webgpu: cache file for the fastest tiles of matrix products; missing entries "
                     "are measured and added");
  command.add_option("--threads", device.threads, "CPU threads; 0: one per core")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void add_device_options(CLI::App& command, DeviceOptions& device,
                        const std::vector<std::string>& more) {
  std::vector<std::string> kinds = {"auto", "cpu", "webgpu"};
  kinds.insert(kinds.end(), more.begin(), more.end());
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : "|") + kind;
  command
      .add_option("--device", device.kind,
                  "Device; auto selects a GPU if there is one, else the CPU")
      ->check(CLI::IsMember(kinds))
      ->option_text(text + " (auto)");
  add_adapter_options(command, device);
}

void check_adapter(const CLI::App& command) {
  for (const CLI::App* const inner : command.get_subcommands()) check_adapter(*inner);
  const CLI::Option* const adapter = command.get_option_no_throw("--adapter");
  if (adapter == nullptr || adapter->empty()) return;
  for (const char* const name : {"--device", "--a", "--b"}) {
    const CLI::Option* const device = command.get_option_no_throw(name);
    if (device == nullptr || device->empty()) continue;
    if (device->as<std::string>() == "webgpu") return;
  }
  throw CLI::ValidationError("--adapter", "requires the device webgpu");
}

}  // namespace tensorgrad::cli
