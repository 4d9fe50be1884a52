// SPDX-License-Identifier: MIT
// How well a language model foretells a text.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>

#include "tensorgrad/train/compile.h"
#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::lm {

struct TextScore {
  double nats = 0;          // the sum of -log p(token | those before it)
  std::int64_t tokens = 0;  // that were foretold
  [[nodiscard]] double loss() const { return tokens == 0 ? 0 : nats / static_cast<double>(tokens); }
  [[nodiscard]] double perplexity() const { return std::exp(loss()); }
};

struct ScoreOptions {
  // A text is gone over in pieces of so many tokens; the state is carried from one to the next, so
  // that the result does not depend on it, but for the last bits.
  std::int64_t chunk = 256;
  // The text is cut into so many parts of one length that are gone over at once: their first tokens
  // are foretold from the end of the part before alone.
  std::int64_t batch = 1;
  // What a token is foretold from goes back to the last multiple of so many tokens of its part (a
  // multiple of `piece`); 0: to the beginning, or, where the model has attention layers, as many
  // pieces as these keep.
  std::int64_t context = 0;
  DeviceOptions device = {};  // an attached scorer has the trainer's
  // Called after each piece, with the tokens that are done.
  std::function<void(std::int64_t tokens)> on_progress = nullptr;
};

// Scores texts of any length with a state that is carried along, in memory that does not grow.
class TextScorer {
 public:
  explicit TextScorer(const SavedModel& model, const ScoreOptions& options = {},
                      Loc loc = Loc::current());
  explicit TextScorer(Trainer<nn::LanguageModel>& trainer, const nn::LanguageModelConfig& config,
                      const ScoreOptions& options = {}, Loc loc = Loc::current());

  // All tokens but the first, each from those before it. Throws UserError for fewer tokens than
  // two for each part.
  TextScore score(std::span<const std::int32_t> tokens, Loc loc = Loc::current());

 private:
  ScoreOptions options_;
  CompiledFunction forward_;
};

}  // namespace tensorgrad::lm
