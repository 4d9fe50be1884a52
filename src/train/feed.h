// SPDX-License-Identifier: MIT
// Declares inputs as leaves of a trace, and checks the values passed for them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compile/runtime/index_bounds.h"
#include "tensorgrad/train/compile.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Adds the inputs to a trace. For a dataset, adds the data and gathers a batch of it.
Inputs declare_inputs(Trace& trace, const std::vector<InputSpec>& inputs,
                      const std::vector<InputSpec>& dataset, std::int64_t batch,
                      const SourceLocation& location);

// The leaf with the shuffled order of the dataset's rows, and the scalar with the position in it.
inline constexpr const char* kOrderName = "_order";
inline constexpr const char* kCursorName = "_cursor";

// Returns true if an input has a dynamic size. Throws ShapeError if an input has several.
bool check_open(const std::vector<InputSpec>& specs, const SourceLocation& location);
// Infers the dynamic size from the inputs of a call. Returns `otherwise` if none of them is
// present. Throws ShapeError if the size is not an integer or differs between two inputs.
std::int64_t dynamic_size(const std::vector<InputSpec>& specs, const FeedView& feed,
                          std::int64_t otherwise);
// Replaces dynamic sizes by `size`.
std::vector<InputSpec> closed(std::vector<InputSpec> specs, std::int64_t size);

// Returns the elements as 32-bit words (compile/runtime/element_codec.h).
std::vector<std::uint32_t> encode_elements(const HostView& value);

// Throws UserError, DtypeError or ShapeError if a value does not fit its declaration, or contains
// an index out of the range in which the program uses it. An f16 input also accepts f32.
void check_value(const InputSpec& spec, const HostView& value,
                 const std::map<std::string, std::vector<IndexBound>>& bounds);
// Checks all inputs of a call. Also throws if one is missing or unknown.
void check_feed(const std::vector<InputSpec>& specs, const FeedView& feed,
                const std::map<std::string, std::vector<IndexBound>>& bounds);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
