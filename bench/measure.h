// SPDX-License-Identifier: MIT
// Timing: medians over batches of calls that fill a given time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tensorgrad/train/device.h>

namespace tensorgrad::bench {

struct Options {
  std::vector<std::string> devices;
  int threads = 0;
  bool allow_software = false;
  std::string tuning_cache;
  double seconds = 3;
  std::vector<std::string> modes;  // empty: all
  bool profile = false;
  bool scans = false;                  // prints a line per scan of a step
  bool stored_attention = false;       // materializes attention weights, for comparison
  bool joint_projection = false;       // one product for queries, keys and values
  bool whole_logits = false;           // Mamba: all logits at once
  bool mixed = false;                  // mixed precision
  bool f16x3 = false;                  // MatmulPrecision::kF16x3
  int snapshot_steps = 0;              // RecoveryOptions::snapshot_steps
  std::int64_t batch = 0, length = 0;  // for a probe and ranks; 0: the workload's own
  std::string models;                  // folder that --write-models filled
  std::vector<std::string> weights;    // of generation; empty: all formats
  int ranks = 0;                       // of distributed training; 0: other measurements
  std::int64_t bucket_bytes = 0;       // 0: the default
  std::string shard;                   // of ranks: "optimizer", "parameters", or empty

  [[nodiscard]] MatmulPrecision precision() const {
    return f16x3 ? MatmulPrecision::kF16x3 : MatmulPrecision::kHighest;
  }
};

// Returns the median microseconds per unit of work; `body` does `units` of it. Warms up first, then
// runs batches until `seconds` have passed. `after` runs after each batch and is not timed.
double median_microseconds(
    double seconds, int units, const std::function<void()>& body,
    const std::function<void()>& after = [] {});

// Prints one JSON object on a line. Values are printed verbatim; quote texts with text().
using Fields = std::vector<std::pair<std::string, std::string>>;
void print_line(const Fields& fields);
void append(Fields& fields, const Fields& more);
std::string text(const std::string& value);
std::string number(double value);

}  // namespace tensorgrad::bench
