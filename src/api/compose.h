// SPDX-License-Identifier: MIT
// What several composites are made of.
#pragma once

#include "tensorgrad/shaping.h"

namespace tensorgrad {

// The largest element, as a number to subtract before exp: not differentiated, and finite. Keeps
// the axes.
Tensor shift_of(Tensor x, Axes axes, Loc loc);

}  // namespace tensorgrad
