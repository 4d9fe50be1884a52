// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(recurrent_layer_without_layers, UserError) {
  // error: recurrent layer: num_layers must be at least 1, got 0
  const nn::GRU none(3, 4, {.num_layers = 0, .bidirectional = true});
}

}  // namespace tensorgrad::testing
