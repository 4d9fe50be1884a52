// SPDX-License-Identifier: MIT
// Options of single layers of language models.
#pragma once

#include <cstdint>

#include "tensorgrad/nn/language_model.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

// Throws UserError, naming the entry, if it is for no layer of the configuration or has options of
// which none of its layers is. `config.layers` has n_layer elements.
void check_layer_options(const LanguageModelConfig& config, Loc loc);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
