// SPDX-License-Identifier: MIT
// Runs one graph in several ways and compares each with the reference in double precision.
//
// The allowed error is not a constant. interpret_with_error_bound() computes how far rounding can
// have moved each element, for example in a sum that cancels, a quotient of small numbers or a
// close comparison. An element is sharp if its bound is at most 1e-2 * (1 + |value|). Sharp
// elements are counted, so that a test can require that most are.
//
// The cost of a compile is checked too. It is counted in visits of nodes (base/visits.h), so that
// it does not depend on a clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compile/debug/graph_run.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {

struct Way {
  std::string name;
  std::shared_ptr<Device> device;
  std::vector<std::string> skip = {};  // passes to skip
  RematerializeOptions rematerializing = {};
  bool split_all = false;             // GraphRunOptions::split_all
  std::int64_t cached_elements = -1;  // GraphRunOptions::cached_elements
  // Number of an earlier way that must produce identical bits; -1: none.
  int same_bits_as = -1;
};

// Returns the way with all transformations for large graphs forced: products, scatters and
// reductions are split, little is kept, cheap values are sunk, reductions are merged.
Way forced(Way way);
// Returns the way with one of skippable_names() skipped, or none, depending on the seed.
Way one_left_out(Way way, std::uint64_t seed);

// Returns ways to run on the CPU:
// - with all passes
// - without each of the passes that change all graphs
// - with little kept
// - with all cheap values sunk
// - with all forced and one pass skipped, depending on the seed
// - unfused and without cse or dce. This must not change a bit of the unfused program, because
//   every remaining node is the same op on the same operands.
// - without passes
std::vector<Way> ways_on_cpu(const std::shared_ptr<Device>& device, std::uint64_t seed);
// Returns a way that depends on the seed: with all passes, with one skipped, or with all forced and
// one skipped.
Way way_on_webgpu(std::uint64_t seed);

struct Finding {
  std::string way;
  bool thrown = false;  // an error instead of a wrong result
  std::string what;
};

struct Verdict {
  std::optional<Finding> finding;  // the first one
  std::int64_t elements = 0, sharp = 0;
  double cost = 0;  // largest cost of a compile: visits per node of the graph
};

// Maximum number of nodes, views and groups that a compile may visit per node of the graph.
inline constexpr double kMaxCost = 400;

// Compares all ways with the reference. The leaves are those of fill_leaves() for the seed.
Verdict compare(const Graph& graph, std::uint32_t seed, const std::vector<Way>& ways);

// Fails the test if `got` exceeds the error bounds of the reference.
void expect_within_bounds(const Graph& graph, const ValueMap& leaves, const ValueMap& got,
                          const std::string& note);

}  // namespace tensorgrad::testing
