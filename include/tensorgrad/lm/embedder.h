// SPDX-License-Identifier: MIT
// Embeddings of texts by a language model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensorgrad/lm/checkpoint.h"
#include "tensorgrad/train/compile.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Options of an Embedder. Its constructors throw UserError if a value is out of range.
struct EmbedOptions {
  nn::Pooling pooling = nn::Pooling::kMean;  ///< Reduction of the hidden states of a text.
  std::int64_t batch = 8;                    ///< Number of texts processed together, at least 1.
  DeviceOptions device = {};                 ///< Not used with a trainer, whose device is used.
};

/// Computes the embeddings of texts with nn::LanguageModel::embed(). Texts are padded to a power of
/// two of tokens, at least 16. Each of these lengths is compiled once.
class Embedder {
 public:
  /// Compiles an embedder with the weights of a loaded model. Throws the errors of
  /// compile_function() and CompiledFunction::upload_params().
  explicit Embedder(const SavedModel& model, const EmbedOptions& options = {},
                    Loc loc = Loc::current());

  /// Attaches an embedder to a trainer. embed() uses the current parameters.
  explicit Embedder(Trainer<nn::LanguageModel>& trainer, const EmbedOptions& options = {},
                    Loc loc = Loc::current());

  /// Returns the embeddings of N texts, given as tokens: f32 [N, d_model]. The embedding of a text
  /// does not depend on the other texts, except for the last bits. Throws UserError if there are no
  /// texts, or if a text is empty or longer than max_context().
  HostTensor embed(std::span<const std::vector<std::int32_t>> texts, Loc loc = Loc::current());

 private:
  Embedder(CompiledFunction forward, const nn::LanguageModelConfig& config,
           const EmbedOptions& options);

  EmbedOptions options_;
  std::int64_t context_, width_;
  CompiledFunction forward_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
