// SPDX-License-Identifier: MIT
// workloads.txt: launches, kernels and bytes in the plan of a step of each measured workload. The
// file holds counts, no times; a change of a pass or of the planner shows in its diff. To update
// it: TENSORGRAD_UPDATE=1 build/release/tests/counts_tests
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/env.h"
#include "large_gpu.h"
#include "models.h"
#include "support/source_path.h"

namespace tensorgrad::testing {
namespace {

using bench::Feeding;

const std::string kFile = test::source_path("tests/counts/workloads.txt");
constexpr const char* kHead =
    R"(# What a step of each workload of bench/models.cpp is planned as. `cpu`: for the cpu device;
# `webgpu`: for the least limits that WebGPU allows, `gpu`: for those of a large GPU (null devices).
# `step`: the host gives a batch; `run`: the device draws it. Joined: launches where small ones
# beside each other are one, as on GPUs. Kernels: launches that differ in kind, sizes or ops. Moved:
# bytes that the launches must read and write. Flops: operations, a multiply-add is two. Peak: bytes
# of all buffers. Made by: TENSORGRAD_UPDATE=1 build/release/tests/counts_tests
# workload        for     mode   launches  joined  kernels        moved          flops          peak  by kind
)";

std::string counted(const std::string& name, const char* limits, const DeviceOptions& device,
                    Feeding feeding) {
  bench::Workload workload = bench::make_workload(name, feeding, device);
  const Profile profile = workload.trainer.profile(workload.feed());
  std::set<std::string> kernels;
  std::map<std::string, int> kinds;
  std::int64_t moved = 0, flops = 0;
  for (const LaunchProfile& launch : profile.launches) {
    std::string kernel = launch.kind + launch.domain;
    for (const std::string& op : launch.ops) kernel += "\n" + op;
    kernels.insert(std::move(kernel));
    ++kinds[launch.kind];
    moved += launch.bytes;
    flops += launch.flops;
  }
  EXPECT_GT(profile.launches.size(), 0U) << name;
  char text[160];
  std::snprintf(text, sizeof text, "%-17s %-7s %-5s %9zu %7d %8zu %13lld %14lld %13lld ",
                name.c_str(), limits, feeding == Feeding::kHost ? "step" : "run",
                profile.launches.size(), workload.trainer.report().launches, kernels.size(),
                static_cast<long long>(moved), static_cast<long long>(flops),
                static_cast<long long>(profile.peak_bytes));
  std::string line = text;
  for (const auto& [kind, count] : kinds) line += " " + kind + " " + std::to_string(count);
  return line + "\n";
}

// char-gpt is too large to be allocated for a count, so it is planned only for GPUs.
std::string counted_all() {
  std::string text = kHead;
  const DeviceOptions large = large_gpu();
  for (const std::string& name : bench::workload_names()) {
    for (const Feeding feeding : {Feeding::kHost, Feeding::kDevice}) {
      if (name != "char-gpt") text += counted(name, "cpu", {.kind = "cpu", .threads = 1}, feeding);
      text += counted(name, "webgpu", {.kind = "null"}, feeding);
      text += counted(name, "gpu", large, feeding);
    }
  }
  text += counted("mamba-130m", "gpu", large, Feeding::kHost);
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Workloads, are_planned_as_the_committed_table_says) {
  const std::string now = counted_all();
  if (!env("TENSORGRAD_UPDATE").empty()) {
    std::ofstream(kFile) << now;
    return;
  }
  std::ostringstream committed;
  committed << std::ifstream(kFile).rdbuf();
  const std::vector<std::string> expected = lines_of(committed.str()), got = lines_of(now);
  ASSERT_EQ(expected.size(), got.size()) << "rows; to write them anew: TENSORGRAD_UPDATE=1";
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(expected[i], got[i]) << "where that is meant: TENSORGRAD_UPDATE=1 writes it anew";
  }
}

}  // namespace
}  // namespace tensorgrad::testing
