// SPDX-License-Identifier: MIT
// Language models whose matrices are kept in fewer bits.
#pragma once

#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::lm {

// The model with its embedding, head and projections in this format, where their rows can be kept
// in it; nn/packed.h says what the formats are. kF32 is the way back: what kernels make of them.
// Throws UserError as nn::quantize_weight(), naming the tensor, and as check_weights().
SavedModel quantize(const SavedModel& model, nn::WeightFormat format);

}  // namespace tensorgrad::lm
