// SPDX-License-Identifier: MIT
// Checks of LanguageModelConfig::layer_options.
#pragma once

#include <cstdint>

#include "tensorgrad/nn/language_model.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

// Throws UserError naming the entry if `first` or `period` is out of range, or if it has options of
// a kind of which none of its layers is. `config.layers` must have n_layer elements.
void check_layer_options(const LanguageModelConfig& config, Loc loc);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
