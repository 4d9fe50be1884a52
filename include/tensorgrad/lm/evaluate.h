// SPDX-License-Identifier: MIT
// Perplexity of a text under a language model.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>

#include "tensorgrad/lm/checkpoint.h"
#include "tensorgrad/train/compile.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Score of a text.
struct TextScore {
  double nats = 0;          ///< Sum of -log p(token | previous tokens).
  std::int64_t tokens = 0;  ///< Number of predicted tokens.

  /// Returns the mean loss in nats per token, 0 if there are no tokens.
  [[nodiscard]] double loss() const { return tokens == 0 ? 0 : nats / static_cast<double>(tokens); }

  /// Returns exp(loss()).
  [[nodiscard]] double perplexity() const { return std::exp(loss()); }
};

/// Options of a TextScorer. Its constructors throw UserError if a value is out of range.
struct ScoreOptions {
  /// Number of tokens of each part that are processed together, at least 1. States are carried from
  /// chunk to chunk, so the score does not depend on the chunk size, up to rounding. If
  /// max_context() is not 0, `chunk` is at most max_context(), and the default `context` depends on
  /// it.
  std::int64_t chunk = 256;

  /// Number of parts into which the text is split, at least 1. They have the same length, except
  /// that the last ones can be shorter. They are scored in parallel. The first token of a part is
  /// predicted only from the last token of the previous part.
  std::int64_t batch = 1;

  /// Context in tokens, a multiple of `chunk`: the states are reset after this many tokens of a
  /// part. 0: never if max_context() is 0, else after the largest multiple of `chunk` up to
  /// max_context(). If max_context() is not 0, `context` is at most max_context().
  std::int64_t context = 0;

  DeviceOptions device = {};  ///< Not used with a trainer, whose device is used.

  /// Called after each chunk with the number of tokens scored so far, in all parts together.
  std::function<void(std::int64_t tokens)> on_progress = nullptr;
};

/// Scores texts of any length with constant device memory.
class TextScorer {
 public:
  /// Compiles a scorer with the weights of a loaded model. Throws the errors of compile_function()
  /// and CompiledFunction::upload_params().
  explicit TextScorer(const SavedModel& model, const ScoreOptions& options = {},
                      Loc loc = Loc::current());

  /// Attaches a scorer to a trainer of a model with this configuration. score() uses the current
  /// parameters.
  explicit TextScorer(Trainer<nn::LanguageModel>& trainer, const nn::LanguageModelConfig& config,
                      const ScoreOptions& options = {}, Loc loc = Loc::current());

  /// Returns the score of all tokens but the first. Throws UserError if there are fewer than
  /// `batch` + 1 tokens.
  TextScore score(std::span<const std::int32_t> tokens, Loc loc = Loc::current());

 private:
  ScoreOptions options_;
  CompiledFunction forward_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
