// SPDX-License-Identifier: MIT
// Language models in use: files, sampling, generation, training.
#pragma once

#include "tensorgrad/lm/checkpoint.h"
#include "tensorgrad/lm/decoder.h"
#include "tensorgrad/lm/evaluate.h"
#include "tensorgrad/lm/generator.h"
#include "tensorgrad/lm/mbjs.h"
#include "tensorgrad/lm/pretrained.h"
#include "tensorgrad/lm/quantize.h"
#include "tensorgrad/lm/sampling.h"
#include "tensorgrad/lm/token_text.h"
#include "tensorgrad/lm/trainer.h"
