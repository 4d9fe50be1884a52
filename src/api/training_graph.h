// SPDX-License-Identifier: MIT
// Appends clipping and the optimizer to a traced loss, over one flat tensor of all parameters.
#pragma once

#include "api/engine.h"

namespace tensorgrad {

// The request that compiles one training step of `traced`.
CompileRequest training_request(TracedFunction& traced, const ParameterTable& table,
                                const CompileOptions& options, const Site& site);

// Throws UserError unless it is a positive number.
void check_clip_norm(double max_norm);

// Names of the run-time scalars that the trainer sets each step.
inline constexpr const char* kLrScalar = "_lr";
inline constexpr const char* kCountScalar = "_t";
inline constexpr const char* kClipScalar = "clip_grad_norm";
// Losses that are kept on the device until they are read.
inline constexpr int kLossRing = 4096;

}  // namespace tensorgrad
