// SPDX-License-Identifier: MIT
// Ops. Each is a free function on tensors; names and conventions are PyTorch's where it has the op.
// What does not fit throws ShapeError or DtypeError with the line of the call.
#pragma once

#include "tensorgrad/arranging.h"
#include "tensorgrad/autocast.h"
#include "tensorgrad/autograd.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/losses.h"
#include "tensorgrad/pointwise.h"
#include "tensorgrad/random.h"
#include "tensorgrad/scan.h"
#include "tensorgrad/shaping.h"
#include "tensorgrad/state_space.h"
#include "tensorgrad/vision.h"
