// SPDX-License-Identifier: MIT
// Appends what is done to the gradients, the optimizer and the averages to a traced loss, over one
// flat tensor of all that it trains.
#pragma once

#include "api/engine.h"
#include "api/update.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// The request that compiles one training step of `traced`, which trains `trained`. All of these
// must outlive compiling.
CompileRequest training_request(TracedFunction& traced, const ParameterTable& table,
                                const TrainedPart& trained, const CompileOptions& options,
                                const SourceLocation& location);

// Throws UserError where the value is none that the scalar of that name may have.
void check_scalar(const std::string& name, double value);
// The same of a schedule's first rate; `who` begins the message.
void check_rate(const std::string& who, const Schedule& schedule);

inline constexpr const char* kClipScalar = "clip_grad_norm";
inline constexpr const char* kClipValueScalar = "clip_grad_value";
// Not 0 in a step that ends in an update; set by the trainer.
inline constexpr const char* kDueScalar = "_due";
// The state that gradients are added up in, and the output with their norm.
inline constexpr const char* kSumState = "grad_sum";
inline constexpr const char* kGradNorm = "grad_norm";
// Losses that are kept on the device until they are read.
inline constexpr int kLossRing = 4096;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
