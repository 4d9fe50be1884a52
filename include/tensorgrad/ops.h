// SPDX-License-Identifier: MIT
// Ops. Each is a free function on tensors; names and conventions are PyTorch's where it has the op.
// What does not fit throws ShapeError or DtypeError with the line of the call.
#pragma once

#include <vector>

#include "tensorgrad/functional.h"
#include "tensorgrad/pointwise.h"
#include "tensorgrad/random.h"
#include "tensorgrad/shaping.h"

namespace tensorgrad {

// The gradient of a scalar f32 loss with respect to each of `wrt`.
std::vector<Tensor> grad(Tensor loss, const std::vector<Tensor>& wrt, Loc loc = Loc::current());

}  // namespace tensorgrad
