// SPDX-License-Identifier: MIT
// Includes everything except language models, tokenizers and file readers.
#pragma once

#include "tensorgrad/error.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/optim.h"
#include "tensorgrad/tensor.h"
#include "tensorgrad/train.h"
#include "tensorgrad/types.h"
#include "tensorgrad/version.h"
