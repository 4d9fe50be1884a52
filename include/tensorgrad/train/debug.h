// SPDX-License-Identifier: MIT
// Debugging: environment switches, and tools for IR text, the format in which TENSORGRAD_DUMP
// writes graphs. See docs/debugging.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorgrad/train/compile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Environment variable that the library or its tests read.
struct EnvironmentSwitch {
  std::string name;     ///< Name of the variable, such as "TENSORGRAD_THREADS".
  std::string meaning;  ///< Its effect, and the values it can have.
  std::string value;    ///< Current value; empty if it is not set.
};

/// Returns all environment variables of the library and its tests.
std::vector<EnvironmentSwitch> environment();

// Functions on the IR text of one graph. Errors name `file` (IoError, with the line).
namespace ir {

/// Returns the names of the compiler passes in the order in which they run. A pass that runs twice
/// is listed twice. Passes that split ops are skipped on devices that do not need them.
std::vector<std::string> passes();

/// Returns the IR text of a graph after the given passes. Passes that depend on device limits
/// assume the minimum limits of WebGPU. Throws UserError if a pass is unknown, and IoError naming
/// `file` and the line if the text is malformed.
std::string optimize(std::string_view text, const std::string& file,
                     const std::vector<std::string>& pass_names);

/// Values of a graph's leaves.
struct LeafOptions {
  /// Values of inputs, parameters, states, dataset entries and run-time scalars, by name. Names of
  /// a checkpoint also work for states ("state/NAME"), and for the part of an optimizer state that
  /// belongs to one parameter ("state/NAME/PARAMETER"). run() and bisect() throw UserError if a
  /// value does not have the leaf's type, or if none of the names is a leaf. If only some names are
  /// unknown, those are ignored.
  std::map<std::string, HostTensor> values = {};

  /// Seed of the values that are not given. Floats are uniform in [-1, 1), divided by the square
  /// root of the last size for parameters of two or more axes. Integers are in the range of what
  /// they index, else from 0 to 7. States have their initial values. Run-time scalars are 0.5, or 0
  /// for integers.
  std::uint32_t seed = 0;

  /// Limit on the memory of the graph. A graph of few bytes may describe huge tensors.
  std::uint64_t max_bytes = std::uint64_t{2} << 30;
};

/// Result of run().
struct RunResult {
  std::string device;  ///< Kind and name of the device, or "reference".

  /// The outputs, then the new value of each updated leaf, named "update NAME".
  std::vector<std::pair<std::string, HostTensor>> values;

  std::vector<std::string> ignored;  ///< Given names that are not leaves of the graph.
};

/// Compiles a graph and runs it once. With the device kind "reference", evaluates it op by op in
/// double precision instead. Throws IoError naming `file` and the line if the text is malformed or
/// has no output and no update, or if an op that computes in f32 has an f16 operand. Throws
/// UserError for invalid leaf values, or above the limit on memory (see LeafOptions).
RunResult run(std::string_view text, const std::string& file, const LeafOptions& leaves,
              const DeviceOptions& device);

/// Result of bisect().
struct BisectResult {
  std::string a;                     ///< First device, like RunResult::device.
  std::string b;                     ///< Second device.
  std::vector<std::string> checked;  ///< "PASS: the same", "PASS: unchanged" ..., in order.

  /// First pass after which the results differ. It is empty if there is none, and "as given" if the
  /// devices differ before any pass.
  std::string pass;

  std::string difference;  ///< The value, the element and both results; empty if there is none.

  SourceLocation location;  ///< Source line of the op whose results differ.

  std::vector<std::string> ignored;  ///< Given names that are not leaves of the graph.
};

/// Finds the first compiler pass after which two devices disagree, or which changes the result on
/// the reference. Applies the passes in order. After each pass that changed the graph, runs it op
/// by op on `a` and `b`. At the end, runs the fused graph. `a` may have the kind "reference" (see
/// run()). `tolerance` is the relative error allowed for a single op; a bound on the accumulated
/// error is propagated through the graph. Throws the errors of run(), and UserError if `b` is the
/// reference.
BisectResult bisect(std::string_view text, const std::string& file, const LeafOptions& leaves,
                    const DeviceOptions& a, const DeviceOptions& b, double tolerance = 1e-5);

}  // namespace ir
}  // namespace tensorgrad::inline TENSORGRAD_ABI
