// SPDX-License-Identifier: MIT
// Training of language models on tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorgrad/lm/checkpoint.h"
#include "tensorgrad/lm/evaluate.h"
#include "tensorgrad/lm/pack_documents.h"
#include "tensorgrad/train/compile.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Returns groups for CompileOptions::groups that train only B and C of the state-space layers, the
/// input and output projections of their states. These are rows of the weight and bias of `x_proj`
/// in Mamba, and of `in_proj` in Mamba-2 and Mamba-3. With `attention`, attention layers are
/// trained as well. All other parameters are frozen. Throws UserError if nothing would be trained.
std::vector<ParamGroup> train_only_bc(const nn::LanguageModelConfig& config, bool attention = false,
                                      Loc loc = Loc::current());

/// Options of a LanguageTrainer. The optimizer is AdamW. The learning rate grows linearly to `lr`
/// and then decreases to `final_lr` along half a cosine.
struct TrainingOptions {
  std::int64_t batch = 16;    ///< Windows per batch, at least 1.
  std::int64_t length = 256;  ///< Tokens per window, at least 1.
  std::int64_t steps =
      1000;                  ///< Updates until the learning rate is `final_lr`, including `warmup`.
  int accumulate = 1;        ///< Batches per update, at least 1.
  double lr = 3e-3;          ///< Highest learning rate, above 0.
  double final_lr = 3e-4;    ///< Learning rate after `steps` updates, from 0 to `lr`.
  std::int64_t warmup = 50;  ///< Updates in which the learning rate grows; 0: begins with `lr`.

  /// Weight decay of the parameters that are not in nn::LanguageModel::no_weight_decay(); with
  /// `train_only_bc`, of all trained parameters.
  double weight_decay = 0.1;

  double beta1 = 0.9;            ///< Decay of the mean of the gradients in AdamW.
  double beta2 = 0.95;           ///< Decay of the mean of their squares.
  double clip_grad_norm = 1;     ///< See CompileOptions::clip_grad_norm; 0: off.
  bool train_only_bc = false;    ///< Trains only B, C and attention layers, see train_only_bc().
  bool mixed_precision = false;  ///< See CompileOptions::mixed_precision.
  std::uint32_t seed = 0;        ///< Seed of the initial weights and the order of the windows.
  DeviceOptions device = {};     ///< Device that trains the model.

  /// See CompileOptions::distributed. `batch` is that of one rank, and each rank draws its own part
  /// of the windows.
  std::shared_ptr<Communicator> distributed = {};
  bool shard_optimizer = false;   ///< See CompileOptions::shard_optimizer.
  bool shard_parameters = false;  ///< See CompileOptions::shard_parameters.

  /// Token with which each document starts, such as the eos token between documents. If set,
  /// windows are packed documents of nn::LanguageModel: nothing is carried from one document to the
  /// next, neither in training nor in validation. The token predicts the document's first one.
  std::optional<std::int32_t> document_start = std::nullopt;
};

/// Options of LanguageTrainer::validate().
struct ValidationOptions {
  std::int64_t max_windows = 0;  ///< Maximum number of windows, evenly spaced; 0: all.

  /// Called before each batch of windows. What it throws ends the validation.
  std::function<void()> before_batch = nullptr;

  /// Number of shards into which the windows are divided, at least 1, for ranks that validate
  /// together: the scores of all shards add up to that of the whole text. `before_batch` is called
  /// equally often in each shard.
  int num_shards = 1;

  int shard = 0;  ///< Shard to score, from 0 to `num_shards` - 1.
};

/// Trains a language model on a text. Each update uses `accumulate` batches of a TokenDataset that
/// wraps, so that every token is trained on in each epoch.
class LanguageTrainer {
 public:
  /// Creates a trainer with initial weights, or with those of a loaded model. `validation` can be
  /// empty. Throws UserError if the text is shorter than a window, an option is out of range or the
  /// model is quantized, and the errors of compile().
  LanguageTrainer(const nn::LanguageModelConfig& config, TokenSequence train,
                  TokenSequence validation, const TrainingOptions& options,
                  Loc loc = Loc::current());
  LanguageTrainer(const SavedModel& model, TokenSequence train, TokenSequence validation,
                  const TrainingOptions& options, Loc loc = Loc::current());
  LanguageTrainer(const LanguageTrainer&) = delete;
  LanguageTrainer& operator=(const LanguageTrainer&) = delete;
  ~LanguageTrainer() = default;

  /// Runs one update and returns the mean loss of its batches, in nats per token. Throws UserError
  /// if a token is not in the vocabulary of the model, or, after the update, if the loss is not
  /// finite.
  double step(Loc loc = Loc::current());

  /// Like step(), but also sets `profile` to the cost of each kernel launch of the last batch. Also
  /// throws UserError if `distributed` has more than one rank.
  double profiled_step(Profile& profile, Loc loc = Loc::current());

  /// Returns the number of updates done.
  [[nodiscard]] std::int64_t steps() const { return trainer_.updates(); }

  /// Returns the number of passes over the text so far, with a fraction.
  [[nodiscard]] double epochs() const;

  /// Returns the learning rate of the next update.
  [[nodiscard]] double lr() const { return trainer_.lr(); }

  /// Returns the score of the validation text, in windows of the same length that each start
  /// without context. Throws UserError if the validation text has fewer than two tokens or an
  /// option is out of range. With `shard_parameters`, all ranks must call it with the same number
  /// of shards.
  TextScore validate(const ValidationOptions& options, Loc loc = Loc::current());
  /// Validates on at most `max_windows` windows and calls `before_batch` before each batch.
  TextScore validate(std::int64_t max_windows, const std::function<void()>& before_batch,
                     Loc loc = Loc::current()) {
    return validate(ValidationOptions{.max_windows = max_windows, .before_batch = before_batch},
                    loc);
  }
  /// Validates on at most `max_windows` windows.
  TextScore validate(std::int64_t max_windows = 0, Loc loc = Loc::current()) {
    return validate(ValidationOptions{.max_windows = max_windows}, loc);
  }

  /// Writes a checkpoint of everything that the next update depends on, including the position in
  /// the text. See TrainerBase::save().
  void save(const FileSink& sink, const SaveOptions& options = {}, Loc loc = Loc::current()) const {
    trainer_.save(sink, options, loc);
  }

  /// Returns the bytes of the checkpoint that save() writes.
  [[nodiscard]] std::vector<std::byte> save_bytes(const SaveOptions& options = {},
                                                  Loc loc = Loc::current()) const {
    return trainer_.save_bytes(options, loc);
  }

  /// Loads a checkpoint. With the same model, texts and options, training resumes bit for bit. See
  /// TrainerBase::load().
  void load(const FileSource& source, Loc loc = Loc::current()) { trainer_.load(source, loc); }

  /// Returns the model with its current weights and the given tokenizer. With `shard_parameters`,
  /// all ranks must call it.
  [[nodiscard]] SavedModel model(std::optional<Tokenizer> tokenizer = std::nullopt) const;

  /// Returns the configuration of the model.
  [[nodiscard]] const nn::LanguageModelConfig& config() const { return config_; }

  /// Returns the options.
  [[nodiscard]] const TrainingOptions& options() const { return options_; }

  /// Returns the number of tokens per update: batch * length * accumulate, for all ranks together.
  [[nodiscard]] std::int64_t tokens_per_step() const;

  /// Returns the number of elements in all parameters.
  [[nodiscard]] std::int64_t parameters() const;

  /// Returns the trainer, for decoders and scorers of the model in training.
  [[nodiscard]] Trainer<nn::LanguageModel>& trainer() { return trainer_; }

 private:
  [[nodiscard]] double checked_loss(double sum, Loc loc) const;

  nn::LanguageModelConfig config_;
  TrainingOptions options_;
  TokenSequence validation_;
  DataLoader loader_;
  Trainer<nn::LanguageModel> trainer_;
  std::optional<CompiledFunction> validator_;  // created by the first validate()
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
