// SPDX-License-Identifier: MIT
// Running a graph that stands alone, as a parsed .ir file does: its leaves are filled, and its
// outputs and updates read back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compile/bounded.h"
#include "compile/instance.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Values for a leaf, from the user.
struct GivenLeaf {
  Type type;
  std::vector<std::uint32_t> words;
};

// What every stored leaf and run-time scalar holds.
struct LeafWords {
  std::map<std::string, std::vector<std::uint32_t>> by_name;  // inputs, data, states, scalars
  std::vector<std::uint32_t> params;                          // the parameter arena
  std::vector<std::string> ignored;                           // given names that are no leaf's
};

// What is not given is made up from `seed`: f32 from -1 to 1 (parameters of two axes or more
// divided by the root of their last size), integers within the bounds of what they index, else from
// 0 to 7; states are as their `init`; scalars are 0.5, integer ones 0, and "_seed" is `seed`.
//
// A name is a leaf's, or what a checkpoint calls it: "state/NAME" for a state,
// "state/NAME/PARAMETER" for the part of it that belongs to a parameter, in a state that is laid
// out as the parameters are. Throws UserError where a type is not the graph's, or none of the names
// is.
LeafWords fill_leaves(const Graph& graph, const std::map<std::string, GivenLeaf>& given,
                      std::uint32_t seed);

std::vector<double> leaf_values(const Node& leaf, const LeafWords& leaves);

// The results of a graph: its outputs in order, then the new values of what it updates.
struct ResultInfo {
  std::string name;  // "loss", "update params"
  ValueId value = kNoValue;
};
std::vector<ResultInfo> results_of(const Graph& graph);

struct GraphRunOptions {
  std::vector<std::string> skip = {};  // passes to leave out
  RematerializeOptions rematerializing = {};
  bool shadow = false;                // check each launch (TENSORGRAD_SHADOW=1 does so as well)
  bool split_all = false;             // that of CompileRequest
  std::int64_t cached_elements = -1;  // that of FuseOptions; less than 0: as the device says
  std::int64_t memory_budget = 0;     // that of PlanOptions
};
// Compiles and runs once on the device; the words of each result.
std::vector<std::vector<std::uint32_t>> run_on_device(const Graph& graph, const LeafWords& leaves,
                                                      const std::shared_ptr<Device>& device,
                                                      const GraphRunOptions& options = {});
// The same by the reference, op by op, with bounds.
std::vector<Bounded> run_on_reference(const Graph& graph, const LeafWords& leaves,
                                      double tolerance = kOpTolerance);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
