// SPDX-License-Identifier: MIT
// One graph run in several ways, each held against the reference in double precision.
//
// How far a way may be off is not a constant: interpret_with_error_bound() follows through every op
// how far rounding can have moved each element (a sum that cancels, a quotient of small numbers, a
// comparison too close to call), and no more than that is allowed. What a bound leaves open (an
// element whose bound is larger than 1e-2 of it) is counted, so that a test can ask that most is
// judged sharply.
//
// What a compile costs is judged too, in visits of nodes (base/visits.h), so that no clock decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compile/debug/graph_run.h"
#include "support/sketch.h"

namespace tensorgrad::testing {

struct Way {
  std::string name;
  std::shared_ptr<Device> device;
  std::vector<std::string> skip = {};  // passes that are left out
  RematerializeOptions rematerializing = {};
  bool split_all = false;             // that of GraphRunOptions
  std::int64_t cached_elements = -1;  // likewise
  // The number of an earlier way that must give the very same bits; -1: none.
  int same_bits_as = -1;
};

// The same with all that is meant for large graphs done whatever their size: products, scatters and
// reductions are split, little is kept, cheap values are sunk, reductions are merged.
Way forced(Way way);
// The same without what the seed says: one of skippable_names(), or nothing.
Way one_left_out(Way way, std::uint64_t seed);

// The CPU with everything on; with each pass off that changes all graphs; with little kept; with
// all sunk; with all forced and, by the seed, one left out; and with all passes off. Leaving out
// what merges equal nodes or drops unused ones changes no bit of the unfused program: every node
// that is left is the same op on the same operands.
std::vector<Way> ways_on_cpu(const std::shared_ptr<Device>& device, std::uint64_t seed);
// By the seed with everything on, with one left out, or with all forced and one left out.
Way way_on_webgpu(std::uint64_t seed);

struct Finding {
  std::string way;
  bool thrown = false;  // an error instead of a result
  std::string what;
};

struct Verdict {
  std::optional<Finding> finding;  // the first
  std::int64_t elements = 0, sharp = 0;
  double cost = 0;  // of a compile, at most: visits per node of the graph
};

// A compile that visits more nodes, views and groups per node of the graph is a finding.
inline constexpr double kMaxCost = 400;

// The leaves are those of fill_leaves() by this seed.
Verdict compare(const Graph& graph, std::uint32_t seed, const std::vector<Way>& ways);

// Fails the test where `got` lies outside of the bounds of the reference.
void expect_within_bounds(const Graph& graph, const ValueMap& leaves, const ValueMap& got,
                          const std::string& note);

}  // namespace tensorgrad::testing
