// SPDX-License-Identifier: MIT
// The launches of an output that the host exchanges with other ranks bucket by bucket: the
// gradients of distributed training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A range of elements of an output.
struct ElementRange {
  std::int64_t first = 0, count = 0;
  bool operator==(const ElementRange&) const = default;
};

// Divides the map that writes the output into one launch per bucket, and moves each to the earliest
// place at which all that it reads is known. A bucket is a contiguous range of at most
// `bucket_bytes` bytes. It ends where a value that the map reads ends, unless this value is larger
// than a bucket. Leaves the program as it is if the output is not written by a map that reads and
// writes by strides, or if there is only one bucket. Must precede fit_bindings().
void split_exchange(Program& program, const std::string& output, std::int64_t bucket_bytes);

// Returns the ranges of the output in the order in which the launches complete them. If the
// launches do not write disjoint ranges, returns the whole output as one range.
std::vector<ElementRange> exchange_ranges(const Program& program, const std::string& output);

// When the ranges of an output can be exchanged.
struct ExchangeStops {
  // For each range, the number of launches to run before its exchange. Does not decrease.
  std::vector<std::size_t> ready;
  std::size_t resume = 0;  // the first launch to run after the exchange of all ranges
};
ExchangeStops exchange_stops(const Program& program, const std::string& output,
                             const std::vector<ElementRange>& ranges);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
