// SPDX-License-Identifier: MIT
// Ops on tensors: free functions, called in a function that is being traced. Names and conventions
// are PyTorch's if PyTorch has the op. Ops throw ShapeError or DtypeError, with the line of the
// call, if shapes, axes or element types do not match. Negative axes count from the end.
#pragma once

#include "tensorgrad/ops/autocast.h"
#include "tensorgrad/ops/autograd.h"
#include "tensorgrad/ops/creation.h"
#include "tensorgrad/ops/custom_op.h"
#include "tensorgrad/ops/indexing.h"
#include "tensorgrad/ops/linalg.h"
#include "tensorgrad/ops/manipulation.h"
#include "tensorgrad/ops/pointwise.h"
#include "tensorgrad/ops/random.h"
#include "tensorgrad/ops/reduction.h"
#include "tensorgrad/ops/scan.h"
#include "tensorgrad/ops/sorting.h"
#include "tensorgrad/ops/state.h"
#include "tensorgrad/ops/views.h"
