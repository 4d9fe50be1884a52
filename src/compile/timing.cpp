// SPDX-License-Identifier: MIT
#include "compile/timing.h"

#include <cstdio>

#include "base/env.h"

namespace tensorgrad {
namespace {

constexpr int kTableLevel = 2;

// 1e9 units per second.
std::string rate(std::int64_t count, double microseconds) {
  if (count == 0 || microseconds <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(count) / microseconds / 1000);
  return text;
}

std::string line(const std::string& number, double microseconds, double total, std::int64_t bytes,
                 std::int64_t flops, const std::string& intensity, const std::string& name) {
  char text[160];
  std::snprintf(text, sizeof text, "%5s %10.1f %6.1f%% %9s %9s %8s  ", number.c_str(), microseconds,
                total > 0 ? 100 * microseconds / total : 0, rate(bytes, microseconds).c_str(),
                rate(flops, microseconds).c_str(), intensity.c_str());
  return text + name + "\n";
}

}  // namespace

std::string intensity_text(const Launch& launch) {
  if (launch.flops == 0 || launch.bytes_moved == 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f",
                static_cast<double>(launch.flops) / static_cast<double>(launch.bytes_moved));
  return text;
}

std::string timing_table(const Program& program, const std::vector<LaunchTiming>& timings) {
  double total = 0;
  std::int64_t bytes = 0, flops = 0;
  for (std::size_t i = 0; i < timings.size(); ++i) {
    total += timings[i].microseconds;
    bytes += program.launches[i].bytes_moved;
    flops += program.launches[i].flops;
  }
  std::string text = "launch         us   share      GB/s   GFLOP/s  flop/B  name\n";
  for (std::size_t i = 0; i < timings.size(); ++i) {
    const Launch& launch = program.launches[i];
    if (debug_level(launch.name) < kTableLevel) continue;
    text += line(std::to_string(i), timings[i].microseconds, total, launch.bytes_moved,
                 launch.flops, intensity_text(launch), launch.name);
  }
  return text + line("all", total, total, bytes, flops, "", "");
}

}  // namespace tensorgrad
