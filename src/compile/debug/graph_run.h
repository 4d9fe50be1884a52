// SPDX-License-Identifier: MIT
// Runs a standalone graph, such as a parsed .ir file: fills its leaves and reads back its outputs
// and updates.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compile/debug/error_bound.h"
#include "compile/runtime/instance.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// User-provided values of a leaf.
struct GivenLeaf {
  Type type;
  std::vector<std::uint32_t> words;
};

// The contents of all stored leaves and runtime scalars.
struct LeafWords {
  std::map<std::string, std::vector<std::uint32_t>> by_name;  // inputs, data, states, scalars
  std::vector<std::uint32_t> params;                          // the parameter arena
  std::vector<std::string> ignored;                           // given names that match no leaf
};

// Fills all leaves. Leaves that are not given are generated from `seed`:
//
// - f32: uniform in [-1, 1); parameters with at least two axes are divided by the square root of
//   their last size
// - integers: within the bounds of what they index, otherwise 0 to 7
// - states: their `init`
// - scalars: 0.5, integers 0; "_seed" is `seed`
//
// A given name is that of a leaf or of a checkpoint entry: "state/NAME" for a state,
// "state/NAME/PARAMETER" for the part that belongs to a parameter, if the state has the layout of
// the parameters. Throws UserError if a type differs from the graph's, or if no name matches.
LeafWords fill_leaves(const Graph& graph, const std::map<std::string, GivenLeaf>& given,
                      std::uint32_t seed);

std::vector<double> leaf_values(const Node& leaf, const LeafWords& leaves);

// The results of a graph: its outputs in order, then the new values of its updates.
struct ResultInfo {
  std::string name;  // e.g. "loss", "update params"
  ValueId value = kNoValue;
};
std::vector<ResultInfo> results_of(const Graph& graph);

struct GraphRunOptions {
  std::vector<std::string> skip = {};  // passes to skip
  RematerializeOptions rematerializing = {};
  bool shadow = false;                // checks each launch, as TENSORGRAD_SHADOW=1 does
  bool split_all = false;             // see CompileRequest
  std::int64_t cached_elements = -1;  // see FuseOptions; negative: as the device decides
  std::int64_t memory_budget = 0;     // see PlanOptions
};
// Compiles the graph, runs it once on the device and returns the words of each result.
std::vector<std::vector<std::uint32_t>> run_on_device(const Graph& graph, const LeafWords& leaves,
                                                      const std::shared_ptr<Device>& device,
                                                      const GraphRunOptions& options = {});
// Like run_on_device(), but evaluates each op by the reference, with error bounds.
std::vector<WithErrorBound> run_on_reference(const Graph& graph, const LeafWords& leaves,
                                             double tolerance = kOpTolerance);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
