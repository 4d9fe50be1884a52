// SPDX-License-Identifier: MIT
// What the host gives a program: declared inputs as leaves of a trace, and their run-time check.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/trace.h"
#include "compile/index_bounds.h"
#include "tensorgrad/train/compile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Adds the inputs (and, for a dataset, the data with the gathering of a batch) to a trace.
Inputs declare_inputs(Trace& trace, const std::vector<InputSpec>& inputs,
                      const std::vector<InputSpec>& dataset, std::int64_t batch,
                      const SourceLocation& location);

// The leaf with the order in which a dataset's rows are drawn, and the scalar with the place in it.
inline constexpr const char* kOrderName = "_order";
inline constexpr const char* kCursorName = "_cursor";

// Throws UserError where an input has several open sizes; gives whether one has any.
bool check_open(const std::vector<InputSpec>& specs, const SourceLocation& location);
// The number that open sizes are in a call: `otherwise` where none of these inputs is given. Throws
// ShapeError where it is no whole number, or not the same for two inputs.
std::int64_t dynamic_size(const std::vector<InputSpec>& specs, const FeedView& feed,
                          std::int64_t otherwise);
// With their open sizes given.
std::vector<InputSpec> closed(std::vector<InputSpec> specs, std::int64_t size);

// The elements as words (compile/words.h).
std::vector<std::uint32_t> words_of(const HostView& value);

// Throws UserError, DtypeError or ShapeError where a value does not fit its declaration (an input
// of f16 takes f32 too), or holds an index out of the range that the program uses it for.
void check_value(const InputSpec& spec, const HostView& value,
                 const std::map<std::string, std::vector<IndexBound>>& bounds);
// The same for all inputs of a call: none missing, none unknown.
void check_feed(const std::vector<InputSpec>& specs, const FeedView& feed,
                const std::map<std::string, std::vector<IndexBound>>& bounds);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
