// SPDX-License-Identifier: MIT
#include "base/env.h"

#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr EnvSwitch kSwitches[] = {
    {"TENSORGRAD_DEBUG",
     "1: the device and a line per compile; 2: the launch table, and after some steps the time of "
     "each launch; 3: the graph after each pass that changed it; 4: kernel text; 5: each rewrite "
     "with its rule. \"3,fuse\" limits it to a pass or to launches of that name"},
    {"TENSORGRAD_DUMP",
     "folder for the graph after each pass, the plan, diagrams and kernels of each compile"},
    {"TENSORGRAD_SHADOW",
     "1: run each launch on the reference too, and stop at the first difference"},
    {"TENSORGRAD_RETRACE",
     "1: trace each loss and function again before each call, and stop if the graph differs"},
    {"TENSORGRAD_SKIP",
     "passes to skip, comma-separated: fold, simplify, cse, dce, split_k_to_binding_limit, "
     "split_k, split_scatter, split_reduce, rematerialize, fuse, row_epilogue, row_operands, "
     "fused_sequences"},
    {"TENSORGRAD_CPU_TARGET",
     "best instruction set for the cpu backend, as named by `tg devices`: AVX3, AVX2, SSE4 ..."},
    {"TENSORGRAD_THREADS", "number of threads of the cpu backend, 1 to 256"},
    {"TENSORGRAD_WEBGPU_LIB", "path of the WebGPU library (wgpu-native or Dawn) to load"},
    {"TENSORGRAD_WGPU_LOG", "error, warn, info, debug or trace: wgpu-native's own log"},
    {"TENSORGRAD_NO_GPU_TESTS", "1: skip the WebGPU backend tests that open a device"},
    {"TENSORGRAD_TEST_WGSL_DIR", "folder for every kernel that the WebGPU tests generate"},
    {"TENSORGRAD_TEST_LOSING_LIB", "WebGPU library that loses its device, for tests of that"},
    {"TENSORGRAD_FLAT_MEMORY_STEPS", "number of steps of the tests of flat memory"},
    {"TENSORGRAD_DEEP_NODES", "number of nodes of the tests of deep graphs"},
    {"TENSORGRAD_ALLOCATION_FAULTS",
     "1: the tests of failing allocations fail every one, not a sample"},
    {"TENSORGRAD_UPDATE", "1: the pass tests rewrite the expected halves of their .ir files"},
};

}  // namespace

std::span<const EnvSwitch> env_switches() { return kSwitches; }

std::string env(std::string_view name) {
  for (const EnvSwitch& each : kSwitches) {
    if (name != each.name) continue;
    const char* value = std::getenv(each.name);
    return value == nullptr ? "" : value;
  }
  UNREACHABLE("no environment switch '" + std::string(name) + "'");
}

void refuse_env(std::string_view name, const std::string& value, const std::string& expected) {
  throw UserError(std::string(name) + ": expected " + expected + ", got '" + value + "'");
}

bool env_flag(std::string_view name) {
  const std::string value = env(name);
  if (!value.empty() && value != "0" && value != "1") refuse_env(name, value, "0 or 1");
  return value == "1";
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    if (comma != 0) parts.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return parts;
}

int debug_level(std::string_view topic) {
  const std::string value = env("TENSORGRAD_DEBUG");
  if (value.empty()) return 0;
  const std::vector<std::string> parts = split_list(value);
  if (parts.empty() || parts[0].size() != 1 || parts[0][0] < '0' || parts[0][0] > '5') {
    refuse_env("TENSORGRAD_DEBUG", value,
               "a level from 0 to 5, optionally with names as in '3,fuse'");
  }
  const int level = parts[0][0] - '0';
  if (parts.size() == 1 || topic.empty()) return level;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (topic.find(parts[i]) != std::string_view::npos) return level;
  }
  return 1;
}

void debug_print(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
