// SPDX-License-Identifier: MIT
// Models in the checkpoints of mambacode.js.
#pragma once

#include <string>

#include "tensorgrad/lm/checkpoint.h"
#include "tensorgrad/data/mbjs.h"

namespace tensorgrad::lm {

// What the file does not say; so is it in that library.
struct MbjsOptions {
  Discretization discretization = Discretization::kZeroOrderHold;
  double norm_epsilon = 1e-6;
};

// A model of Mamba-1 layers: all sizes are found from those of its tensors. The taps of the
// convolution are turned round (there the first is that of the step itself); biases that are all
// zero are left out. Throws IoError as read_mbjs(), and, naming the tensor and both sizes, where
// tensors do not fit each other. Layers of the other kinds are refused: what that library computes
// in them is no model of ours (docs/mamba_behaviours.md); read_mbjs() gives their tensors.
SavedModel load_mbjs(const std::string& path, const MbjsOptions& options = {});
// The same for what has been read; `name` stands for the file in messages.
SavedModel convert_mbjs(const MbjsFile& file, const std::string& name,
                         const MbjsOptions& options = {});

// Writes a model whose layers are all Mamba-1 and whose head is tied, without its tokenizer; biases
// that it lacks are zeros there, and weights in fewer bits what quantize() to f32 makes of them.
// Who reads the file must know the discretization and epsilon. Throws UserError for other models,
// as check_weights() and as write_mbjs().
void save_mbjs(const std::string& path, const SavedModel& model, int version = 2);

}  // namespace tensorgrad::lm
