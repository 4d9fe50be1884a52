// SPDX-License-Identifier: MIT
// Extends a traced loss to a training step. Gradients, optimizer and averages are computed over one
// flat tensor of all trained parameters.
#pragma once

#include <optional>
#include <string>

#include "train/program_session.h"
#include "train/update.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns the request to compile one training step of `traced`, which trains `trained`. All
// arguments must outlive compilation. If the part has shards, the step updates that of `rank`, by
// default of this rank. Throws UserError if an optimizer that is not elementwise would update one.
CompileRequest training_request(TracedFunction& traced, const ParameterTable& table,
                                const ParameterRange& trained, const CompileOptions& options,
                                const SourceLocation& location,
                                std::optional<int> rank = std::nullopt);

// Throws UserError if the scalar of that name cannot have this value.
void check_scalar(const std::string& name, double value);
// Throws UserError, beginning with `who`, if the first rate of the schedule is negative or not
// finite.
void check_rate(const std::string& who, const Schedule& schedule);

inline constexpr const char* kClipScalar = "clip_grad_norm";
inline constexpr const char* kClipValueScalar = "clip_grad_value";
// Not 0 in a step that ends in an update; set by the trainer.
inline constexpr const char* kDueScalar = "_due";
// The state that accumulates gradients, and the output with their norm.
inline constexpr const char* kSumState = "grad_sum";
inline constexpr const char* kGradNorm = "grad_norm";
// The output in which the ranks of distributed training add their gradients, between two parts of
// the step.
inline constexpr const char* kExchange = "_exchange";
// Losses kept on the device until they are read.
inline constexpr int kLossRing = 4096;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
