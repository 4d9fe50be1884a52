// SPDX-License-Identifier: MIT
// Conversion between language models and MBJS files, the checkpoints of mambacode.js.
#pragma once

#include <string>

#include "tensorgrad/data/mbjs.h"
#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Settings of a model that MBJS files do not contain. The defaults are those of mambacode.js.
struct MbjsOptions {
  Discretization discretization =
      Discretization::kZeroOrderHold;  ///< Discretization of all layers.
  double norm_epsilon = 1e-6;          ///< Epsilon of all norms.
};

/// Reads a model of Mamba-1 layers. All sizes are inferred from those of the tensors. The taps of
/// convolutions are reversed, because MBJS stores the tap of the current step first. A bias
/// that is zero in every layer is left out, except that of `dt_proj`.
///
/// Throws the errors of read_mbjs(). Also throws IoError if the file has layers of other kinds,
/// which differ from this library's layers (tests/behaviours/mambacode_js.tsv), or if the sizes of
/// tensors do not match. The message names the tensor and both sizes. read_mbjs() still returns the
/// tensors of such files.
SavedModel load_mbjs(const FileSource& source, const MbjsOptions& options = {});

/// Converts the content of an MBJS file, like load_mbjs(). `name` stands for the file in errors.
SavedModel convert_mbjs(const MbjsFile& file, const std::string& name,
                        const MbjsOptions& options = {});

/// Writes a model of Mamba-1 layers with tied embeddings, without its tokenizer. Missing biases are
/// written as zeros, and quantized weights are dequantized. The file contains neither the
/// discretization nor the epsilon, so that readers must know them. Throws UserError if the model
/// has other layers or its own output layer, and the errors of check_weights() and write_mbjs().
/// `version` is 1, 2 or 3; version 3 stores the values as f16.
void save_mbjs(const FileSink& sink, const SavedModel& model, int version = 2);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
