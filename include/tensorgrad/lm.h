// SPDX-License-Identifier: MIT
// Language models, and tools for them: checkpoints and pretrained weights, training, evaluation,
// embeddings, quantization, sampling and generation.
#pragma once

#include "tensorgrad/lm/checkpoint.h"
#include "tensorgrad/lm/decoder.h"
#include "tensorgrad/lm/embedder.h"
#include "tensorgrad/lm/evaluate.h"
#include "tensorgrad/lm/generator.h"
#include "tensorgrad/lm/gguf.h"
#include "tensorgrad/lm/mbjs.h"
#include "tensorgrad/lm/pack_documents.h"
#include "tensorgrad/lm/pretrained.h"
#include "tensorgrad/lm/quantize.h"
#include "tensorgrad/lm/sampling.h"
#include "tensorgrad/lm/trainer.h"
#include "tensorgrad/nn/language_model.h"
