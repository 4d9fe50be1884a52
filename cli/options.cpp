// SPDX-License-Identifier: MIT
#include "options.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>

#include "usage.h"

namespace tensorgrad::cli {

const CLI::Validator kPositive(
    [](std::string& text) {
      const double value = std::strtod(text.c_str(), nullptr);
      return value > 0 && std::isfinite(value) ? "" : "expected a number above 0, got " + text;
    },
    "NUMBER > 0");
const CLI::Validator kFromZero(
    [](std::string& text) {
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      const bool valid = *end == '\0' && value >= 0 && std::isfinite(value);
      return valid ? "" : "expected a number of at least 0, got " + text;
    },
    "NUMBER >= 0");
const CLI::Validator kShare(
    [](std::string& text) {
      const double value = std::strtod(text.c_str(), nullptr);
      return value > 0 && value < 1 ? "" : "expected a fraction between 0 and 1, got " + text;
    },
    "0..1");

void add_adapter_options(CLI::App& command, DeviceOptions& device) {
  command.add_option("--adapter", device.adapter, "WebGPU adapter, by its number in `tg devices`")
      ->check(in_range(0, 1000));
  command.add_flag("--allow-software", device.allow_software,
                   "Allow webgpu to use a software adapter");
  command.add_option("--tuning-cache", device.tuning_cache,
                     "webgpu: cache file for the fastest tiles of matrix products; missing entries "
                     "are measured and added");
  command
      .add_option_function<std::string>(
          "--matmul-precision",
          [&device](const std::string& name) {
            device.matmul_precision =
                name == "f16x3" ? MatmulPrecision::kF16x3 : MatmulPrecision::kHighest;
          },
          "webgpu: compute products of f32 in f32, or as three products of f16 on matrix units, if "
          "there are any")
      ->check(one_of({"highest", "f16x3"}))
      ->option_text("highest|f16x3 (highest)");
  command.add_option("--threads", device.threads, "CPU threads; 0: one per core")
      ->check(in_range(0, std::numeric_limits<int>::max()))
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
      ->check(one_of(kinds))
      ->option_text(text + " (auto)");
  add_adapter_options(command, device);
}

CLI::Option* add_max_expansion(CLI::App& command, double& limit, const std::string& what) {
  return command
      .add_option("--max-expansion", limit,
                  what + ": largest factor of decompression; up to 64 MiB are always read")
      ->check(kPositive)
      ->capture_default_str();
}

namespace {

// Returns the seconds of "30s", "5m" or "2h". Throws CLI::ValidationError for `option`, which also
// takes `other`.
double seconds_of(const std::string& text, const char* option, const char* other = "") {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const double factor = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error == std::errc() && factor > 0 && value > 0) return value * factor;
  throw CLI::ValidationError(
      option, "expected a time such as 30s, 5m or 2h" + std::string(other) + ", got " + text);
}

// Returns the view of --ui=web, --ui=tui, --ui=PORT, or --ui without a value.
UiOptions view_of(const std::string& text) {
  if (text == "tui") return {.view = UiOptions::View::kScreen};
  UiOptions page{.view = UiOptions::View::kPage};
  if (text == "web" || text == "true") return page;  // "true": CLI11's value of a flag without one
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, page.port);
  if (error == std::errc() && stop == end && page.port >= 0 && page.port <= 65'535) return page;
  throw CLI::ValidationError(
      "expected web, tui or a port from 0 to 65535, got " + text +
      (text.find_first_of(".:") == std::string::npos
           ? ""
           : "; the page is served on 127.0.0.1 only, and other machines reach it through a "
             "tunnel: ssh -L PORT:127.0.0.1:PORT HOST"));
}

}  // namespace

void add_checkpoint_every(CLI::App& command, double& seconds) {
  command
      .add_option_function<std::string>(
          "--checkpoint-every",
          [&seconds](const std::string& text) {
            seconds = text == "never" ? std::numeric_limits<double>::infinity()
                                      : seconds_of(text, "--checkpoint-every", ", or never");
          },
          "Time between two checkpoints within an epoch or between validations: 30s, 5m, 2h, never")
      ->option_text("TIME (5m)");
}

void add_rank_options(CLI::App& command, RankOptions& ranks) {
  command
      .add_option("--distributed", ranks.mode,
                  "Train one run on all processes of mpirun; auto: if there are several; off: each "
                  "trains its own run")
      ->check(one_of({"auto", "mpi", "off"}))
      ->option_text("auto|mpi|off (auto)");
  command
      .add_option_function<std::string>(
          "--distributed-timeout",
          [&ranks](const std::string& text) {
            ranks.timeout_seconds = seconds_of(text, "--distributed-timeout");
          },
          "Longest wait for another process before all end with an error: 30s, 5m, 2h")
      ->option_text("TIME (5m)");
  command.add_flag("--shard-optimizer", ranks.shard_optimizer,
                   "Divide the optimizer's states among the processes of mpirun (ZeRO-1), to save "
                   "memory; the results and files stay the same");
  command.add_flag("--shard-parameters", ranks.shard_parameters,
                   "Divide parameters and gradients as well (ZeRO-3), and gather parameters in "
                   "parts while a step uses them; implies --shard-optimizer");
}

void add_ui(CLI::App& command, UiOptions& ui) {
  // A flag, since an option would take the next argument as its value: `--ui TEXT`.
  const auto text = std::make_shared<std::string>();
  command
      .add_flag(
          "--ui", *text,
          "Show the run while it trains. web (default): a page on a free port of 127.0.0.1; PORT: "
          "on this port; tui: on the whole terminal")
      ->each([&ui, text](const std::string& value) { ui = view_of(value); })
      ->option_text("or --ui=web|tui|PORT");
}

void add_tensorboard(CLI::App& command, bool& wanted) {
  command.add_flag("--tensorboard", wanted,
                   "Write event files for `tensorboard --logdir runs`; resuming continues them");
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
