// SPDX-License-Identifier: MIT
// Training of language models on tokens. B windows of L tokens a step; every token of the text is
// trained on in each epoch (TextWindows).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorgrad/train/compile.h"
#include "tensorgrad/lm/checkpoint.h"
#include "tensorgrad/lm/evaluate.h"
#include "tensorgrad/lm/token_text.h"

namespace tensorgrad::lm {

// Of a model's parameters those rows alone that make B and C of the state-space layers, what is
// written into the states and what is read from them: of Mamba's x_proj, of Mamba-2's and Mamba-3's
// in_proj, of matrix and bias. All else is frozen, but for attention layers where `attention` is
// set. Groups for CompileOptions. Throws UserError where nothing would be trained.
std::vector<ParamGroup> train_only_bc(const nn::LanguageModelConfig& config, bool attention = false,
                                      Loc loc = Loc::current());

struct TrainingOptions {
  std::int64_t batch = 16, length = 256;  // windows of a step, tokens of a window
  std::int64_t steps = 1000;              // updates, over which the learning rate comes down
  int accumulate = 1;                     // batches of an update
  double lr = 3e-3, final_lr = 3e-4;      // along half a cosine
  std::int64_t warmup = 50;               // updates in which it grows from 0
  double weight_decay = 0.1;              // of matrices (LanguageModel::no_weight_decay())
  double beta1 = 0.9, beta2 = 0.95;       // of AdamW
  double clip_grad_norm = 1;                        // of the norm of all gradients; 0: off
  bool train_only_bc = false;
  bool mixed_precision = false;
  std::uint32_t seed = 0;  // of initial weights and the order of windows
  DeviceOptions device = {};
};

// A model, its text and how far they are.
class LanguageTrainer {
 public:
  // Trains from initial values, or goes on from `weights`. `validation` may be empty. Throws
  // UserError for a text that is shorter than a window, a token that the model does not know (in
  // the step that meets it), options out of range, and as compile().
  LanguageTrainer(const nn::LanguageModelConfig& config, TokenText train, TokenText validation,
                  const TrainingOptions& options, Loc loc = Loc::current());
  LanguageTrainer(const SavedModel& model, TokenText train, TokenText validation,
                  const TrainingOptions& options, Loc loc = Loc::current());
  LanguageTrainer(const LanguageTrainer&) = delete;
  LanguageTrainer& operator=(const LanguageTrainer&) = delete;
  ~LanguageTrainer() = default;

  // One update, of `accumulate` batches; the mean of their losses, in nats a token. Throws
  // UserError where that is not finite.
  double step(Loc loc = Loc::current());
  [[nodiscard]] std::int64_t steps() const { return trainer_.updates(); }  // updates done
  [[nodiscard]] double epochs() const;                                     // of the text
  [[nodiscard]] double lr() const { return trainer_.lr(); }                // of the next update

  // On validation windows of the same length, each from its own beginning: all of them, or about
  // `most` that lie evenly in the text. Throws UserError where there is no validation text.
  TextScore validate(std::int64_t most = 0, Loc loc = Loc::current());

  // Everything that the next step depends on, with the place in the text: a trainer of the same
  // model, texts and options that loads it goes on bit for bit.
  void save(const std::string& path, Loc loc = Loc::current()) const { trainer_.save(path, loc); }
  void load(const std::string& path, Loc loc = Loc::current()) { trainer_.load(path, loc); }
  // The model as it is now.
  [[nodiscard]] SavedModel model(std::optional<Tokenizer> tokenizer = std::nullopt) const;

  [[nodiscard]] const nn::LanguageModelConfig& config() const { return config_; }
  [[nodiscard]] const TrainingOptions& options() const { return options_; }
  [[nodiscard]] std::int64_t tokens_per_step() const;
  [[nodiscard]] std::int64_t parameters() const;
  // For generators and scorers of what is being trained.
  [[nodiscard]] Trainer<nn::LanguageModel>& trainer() { return trainer_; }

 private:
  nn::LanguageModelConfig config_;
  TrainingOptions options_;
  TokenText validation_;
  std::shared_ptr<const TextWindows> windows_;
  DataLoader loader_;
  Trainer<nn::LanguageModel> trainer_;
  std::optional<CompiledFunction> validator_;  // from the first validate() on
};

// Says when a validation loss no longer falls.
class EarlyStopping {
 public:
  // After so many losses in a row that are not below the best before them; 0: never.
  explicit EarlyStopping(int patience) : patience_(patience) {}
  // True where it is the best so far.
  bool update(double loss);
  [[nodiscard]] bool should_stop() const { return patience_ > 0 && since_ >= patience_; }
  [[nodiscard]] double best() const { return best_; }

 private:
  int patience_, since_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace tensorgrad::lm
