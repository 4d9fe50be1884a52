// SPDX-License-Identifier: MIT
// States of layers that process a sequence in chunks.
#pragma once

#include <string>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Name and shape of a state that a layer carries between the chunks of a sequence. It is f32 and
/// starts as zeros.
struct StateSpec {
  std::string name;  ///< Name within the layer, such as "ssm".
  Shape shape;       ///< Shape for all sequences of a batch. The first axis is B.

  /// True if the state must be zeroed when a new sequence starts. False if the layer ignores its
  /// content then, because its other states are zero.
  bool cleared = true;
};

/// Output of a layer for a chunk of a sequence, and its states after the chunk.
struct RecurrentResult {
  Tensor y;                   ///< Output of the chunk.
  std::vector<Tensor> state;  ///< States after the chunk, in the order of `state_specs()`.
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
