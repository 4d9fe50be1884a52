// SPDX-License-Identifier: MIT
// Timing: medians over batches of calls that fill a given time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tensorgrad::bench {

struct Options {
  std::vector<std::string> devices;
  int threads = 0;
  bool allow_software = false;
  std::string tuning_cache;
  double seconds = 3;
  std::vector<std::string> modes;  // none: all
  bool profile = false;
  bool scans = false;                  // a line per scan of a step
  bool stored_attention = false;       // its weights in memory, to compare with
  bool joint_projection = false;       // queries, keys and values by one product
  bool whole_logits = false;           // of a Mamba: not a piece at a time
  bool mixed = false;                  // in mixed precision
  int snapshot_steps = 0;              // RecoveryOptions::snapshot_steps
  std::int64_t batch = 0, length = 0;  // of a probe; 0: the workload's own
};

// Median microseconds per unit of work: `body` does `units` of it. Warm-up first, then batches
// until `seconds` have passed. `after` comes after each, and is not timed.
double median_microseconds(
    double seconds, int units, const std::function<void()>& body,
    const std::function<void()>& after = [] {});

// Prints one JSON object on a line. Values are written as they are; quote texts with text().
using Fields = std::vector<std::pair<std::string, std::string>>;
void print_line(const Fields& fields);
void append(Fields& fields, const Fields& more);
std::string text(const std::string& value);
std::string number(double value);

}  // namespace tensorgrad::bench
