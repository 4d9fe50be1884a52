// SPDX-License-Identifier: MIT
// One graph run in several ways, each held against the reference in double precision.
//
// How far a way may be off is not a constant: interpret_bounded() follows through every op how far
// rounding can have moved each element (a sum that cancels, a quotient of small numbers, a
// comparison too close to call), and no more than that is allowed. What a bound leaves open (an
// element whose bound is larger than 1e-2 of it) is counted, so that a test can ask that most is
// judged sharply.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compile/graph_run.h"
#include "support/sketch.h"

namespace tensorgrad::testing {

struct Way {
  std::string name;
  std::shared_ptr<Device> device;
  std::vector<std::string> skip = {};  // passes that are left out
  RematerializeOptions rematerializing = {};
  std::int64_t cached_elements = -1;  // that of GraphRunOptions
  // The number of an earlier way that must give the very same bits; -1: none.
  int same_bits_as = -1;
};

// The CPU with everything on, with each pass off, with little kept, with cheap values sunk whatever
// their size, and with all passes off. Leaving out what merges equal nodes or drops unused ones
// changes no bit of the unfused program: every node that is left is the same op on the same
// operands.
std::vector<Way> ways_on_cpu(const std::shared_ptr<Device>& device);
Way way_on_webgpu();

struct Finding {
  std::string way;
  bool thrown = false;  // an error instead of a result
  std::string what;
};

struct Verdict {
  std::optional<Finding> finding;  // the first
  std::int64_t elements = 0, sharp = 0;
};

// The leaves are those of fill_leaves() by this seed.
Verdict compare(const Graph& graph, std::uint32_t seed, const std::vector<Way>& ways);

// Fails the test where `got` lies outside of the bounds of the reference.
void expect_within_bounds(const Graph& graph, const ValueMap& leaves, const ValueMap& got,
                          const std::string& note);

}  // namespace tensorgrad::testing
