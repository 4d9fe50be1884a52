// SPDX-License-Identifier: MIT
// Includes what models, training and checkpoints need. It leaves out data.h (data sets, file
// formats and tokenizers) and lm.h (language models). Of data/, it includes only file_source.h,
// whose types convert the path in `trainer.save("run.safetensors")`.
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
