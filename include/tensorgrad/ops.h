// SPDX-License-Identifier: MIT
// Ops. Each is a free function on tensors; names and conventions are PyTorch's where it has the op.
// What does not fit throws ShapeError or DtypeError with the line of the call.
#pragma once

#include "tensorgrad/ops/manipulation.h"
#include "tensorgrad/ops/autocast.h"
#include "tensorgrad/ops/autograd.h"
#include "tensorgrad/functional/activations.h"
#include "tensorgrad/functional/losses.h"
#include "tensorgrad/ops/pointwise.h"
#include "tensorgrad/ops/random.h"
#include "tensorgrad/ops/scan.h"
#include "tensorgrad/ops/views.h"
#include "tensorgrad/functional/state_space.h"
#include "tensorgrad/functional/vision.h"
