// SPDX-License-Identifier: MIT
// Quantization of language models.
#pragma once

#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Returns the model with its embedding, output layer and projections in another weight format (see
/// nn/quantized.h). Matrices for which nn::can_quantize() is false stay f32. A quantized model is
/// dequantized first; kF32 returns that result. Throws the errors of nn::quantize_weight(), naming
/// the tensor, and those of check_weights().
SavedModel quantize(const SavedModel& model, nn::WeightFormat format);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
