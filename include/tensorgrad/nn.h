// SPDX-License-Identifier: MIT
// Layers of neural networks. Layers that PyTorch has use its weight layouts and initialization.
// nn/language_model.h, a whole model, is in lm.h.
#pragma once

#include "tensorgrad/nn/activations.h"
#include "tensorgrad/nn/attention.h"
#include "tensorgrad/nn/causal_attention.h"
#include "tensorgrad/nn/gated_mlp.h"
#include "tensorgrad/nn/init.h"
#include "tensorgrad/nn/linear.h"
#include "tensorgrad/nn/mamba.h"
#include "tensorgrad/nn/mixture_of_experts.h"
#include "tensorgrad/nn/module.h"
#include "tensorgrad/nn/normalization.h"
#include "tensorgrad/nn/quantized.h"
#include "tensorgrad/nn/recurrent.h"
#include "tensorgrad/nn/recurrent_state.h"
#include "tensorgrad/nn/sequential.h"
#include "tensorgrad/nn/shared_transformer.h"
#include "tensorgrad/nn/vision.h"
