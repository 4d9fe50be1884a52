// SPDX-License-Identifier: MIT
// Random numbers: Philox4x32-10, by (seed, op, step, element), the same on every backend. No two
// ops and no two steps share a stream.
#pragma once

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// Uniform 32-bit words.
Tensor random_bits(const Shape& shape, Loc loc = Loc::current());
// Uniform in [0, 1).
Tensor rand(const Shape& shape, Loc loc = Loc::current());
// Normal, mean 0, standard deviation 1 (Box and Muller 1958).
Tensor randn(const Shape& shape, Loc loc = Loc::current());

}  // namespace tensorgrad
