// SPDX-License-Identifier: MIT
// Data sets and files: images, CSV, IDX, text, tokenizers, event files of TensorBoard, and weights
// (safetensors, GGUF, NumPy, ONNX, mbjs).
#pragma once

#include "tensorgrad/data/csv.h"
#include "tensorgrad/data/file_source.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/data/gguf.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/data/images.h"
#include "tensorgrad/data/mbjs.h"
#include "tensorgrad/data/npy.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/data/tensorboard.h"
#include "tensorgrad/data/text.h"
#include "tensorgrad/data/token_data.h"
#include "tensorgrad/data/tokenizer.h"
#include "tensorgrad/data/weights.h"
