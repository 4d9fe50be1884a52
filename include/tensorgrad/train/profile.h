// SPDX-License-Identifier: MIT
// What the launches of a step cost, and how that compares with what the device could do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/error.h"
#include "tensorgrad/train/host_times.h"

namespace tensorgrad {

struct ProfileOptions {
  int steps = 1;          // real ones, each timed launch by launch; at least 1
  bool roofline = false;  // measure the device's rates too: under a second, up to 512 MiB
};

// One launch of the step. Small ones that a GPU runs beside each other as one kernel are one: their
// names, kinds where these differ, and domains have bars between them, their numbers are sums.
struct LaunchProfile {
  std::string name;              // as in explain() and in a dump
  std::string kind;              // "map", "row", "contraction" ...
  std::string domain;            // the sizes it goes over: "1024", "64x10", "64x128x784" (m, n, k)
  std::vector<std::string> ops;  // what is fused into it, with shapes: "add f32[256,64]"
  std::vector<Site> sites;       // the user's lines
  std::int64_t bytes = 0;        // what it must move by the plan
  std::int64_t flops = 0;        // its operations by the plan: a multiply-add is two
  double microseconds = 0;       // median over the steps
};

// A pass of the compile; `begin` is counted from where the compile began. Milliseconds.
struct PassProfile {
  std::string name;
  double begin = 0, milliseconds = 0;
};

// What the device has been seen to do, with our own kernels; 0: not measured.
struct DeviceRates {
  double bytes_per_second = 0;  // read and written, of a copy
  double flops_per_second = 0;  // of a product of matrices
  std::string how;              // the sizes that were taken
};

struct Profile {
  std::string device;
  std::string clock;  // whose the times of launches are: "GPU timestamps", "host clock"
  int steps = 0;
  std::int64_t peak_bytes = 0;  // of all buffers
  std::vector<LaunchProfile> launches;
  std::vector<PassProfile> passes;
  DeviceRates rates;

  [[nodiscard]] double microseconds() const;  // of all launches
  // The least time that the device's rates allow for the launch's bytes and operations, over the
  // time it took. Above 1 where its data lie in a cache. 0 where it is not known.
  [[nodiscard]] double roofline_share(const LaunchProfile& launch) const;
  // Is it the operations that decide that least time, and not the bytes?
  [[nodiscard]] bool compute_bound(const LaunchProfile& launch) const;

  // A line per launch, the sums, the rates and the time of each pass, for a terminal.
  [[nodiscard]] std::string table() const;
  // The same as a page with a timeline and a roofline plot; needs no other file and no network.
  [[nodiscard]] std::string html(const std::string& title = "profile") const;
  // Passes and launches as Chrome's trace events, for ui.perfetto.dev and chrome://tracing.
  [[nodiscard]] std::string trace_events() const;
};

}  // namespace tensorgrad
