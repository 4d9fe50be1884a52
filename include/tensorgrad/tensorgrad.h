// SPDX-License-Identifier: MIT
// The whole public face.
#pragma once

#include "tensorgrad/compile.h"
#include "tensorgrad/custom_op.h"
#include "tensorgrad/data.h"
#include "tensorgrad/data_loader.h"
#include "tensorgrad/debug.h"
#include "tensorgrad/device.h"
#include "tensorgrad/error.h"
#include "tensorgrad/feed.h"
#include "tensorgrad/io.h"
#include "tensorgrad/module.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/onnx.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/optim.h"
#include "tensorgrad/single_flight.h"
#include "tensorgrad/tensor.h"
#include "tensorgrad/token_data.h"
#include "tensorgrad/tokenizer.h"
#include "tensorgrad/types.h"
#include "tensorgrad/weights.h"
