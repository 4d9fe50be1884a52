// SPDX-License-Identifier: MIT
// Looking inside: the environment switches, and tools for IR text, the form in which
// TENSORGRAD_DUMP writes graphs. docs/debugging.md shows them at work.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorgrad/train/compile.h"

namespace tensorgrad {

// A switch that the library reads from the environment, with its value now; empty: not set.
struct EnvironmentSwitch {
  std::string name, meaning, value;
};
std::vector<EnvironmentSwitch> environment();

// Each takes the text of one graph; `file` stands for it in errors (IoError, with the line).
namespace ir {

// The names of the passes in the order in which they run when a model is compiled. Those that split
// something are left out where the device does not need them.
std::vector<std::string> passes();

// The graph after these passes, as text; the splits are for a device with WebGPU's least limits.
// Throws UserError where there is no such pass.
std::string optimize(std::string_view text, const std::string& file,
                     const std::vector<std::string>& pass_names);

// What a graph is run on.
struct LeafOptions {
  // Values of inputs, parameters, states, data and run-time scalars, by name; f32, i32 or u32.
  // Parameters and states also go by the names that they have in a checkpoint. A UserError where no
  // name is the graph's.
  std::map<std::string, HostTensor> given = {};
  // Of the values of the others: f32 between -1 and 1, integers within what they index, states as
  // they begin, run-time scalars 0.5 or 0.
  std::uint32_t seed = 0;
};

struct RunResult {
  std::string device;
  // The outputs, then for each leaf that is updated its new value, as "update NAME".
  std::vector<std::pair<std::string, HostTensor>> values;
  std::vector<std::string> ignored;  // given names that are no leaf's
};

// Compiles the graph and runs it once. The device may also be "reference": every op by itself, in
// double.
RunResult run(std::string_view text, const std::string& file, const LeafOptions& leaves,
              const DeviceOptions& device);

struct BisectResult {
  std::string a, b;                  // the devices
  std::vector<std::string> checked;  // a line for each stage
  // The first pass after which the results differ; empty where none does, "as given" where the
  // devices differ on the graph itself. `what` names value, element and both sides.
  std::string pass, what;
  Site site;
  std::vector<std::string> ignored;  // given names that are no leaf's
};

// Applies the passes one after another, and runs the graph on `a` and on `b` after each: op by op,
// and at last fused. `tolerance` is the relative error that one op may make of its own; how it
// grows from op to op is followed through the graph.
BisectResult bisect(std::string_view text, const std::string& file, const LeafOptions& leaves,
                    const DeviceOptions& a, const DeviceOptions& b, double tolerance = 1e-5);

}  // namespace ir
}  // namespace tensorgrad
