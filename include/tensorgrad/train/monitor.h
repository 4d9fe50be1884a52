// SPDX-License-Identifier: MIT
// Decisions of a training loop from its losses: when to stop, which checkpoint to keep, and which
// learning rate to begin with.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tensorgrad/train/trainer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Stops training when the validation loss no longer decreases.
class EarlyStopping {
 public:
  /// Stops after `patience` losses in a row that are not less than the best one; 0: never.
  explicit EarlyStopping(int patience) : patience_(patience) {}

  /// Records a loss. Returns true if it is the lowest so far; NaN is not.
  bool update(double loss);

  /// Returns true if training should stop.
  [[nodiscard]] bool should_stop() const { return patience_ > 0 && since_ >= patience_; }

  /// Returns the lowest loss so far, infinity before the first update().
  [[nodiscard]] double best() const { return best_; }

 private:
  int patience_, since_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
};

/// Keeps the checkpoint of the lowest validation loss in a file.
class BestCheckpoint {
 public:
  /// `best` is the loss to improve on. If training resumes, pass the loss of the existing
  /// checkpoint.
  explicit BestCheckpoint(std::string path, double best = std::numeric_limits<double>::infinity())
      : path_(std::move(path)), best_(best) {}

  /// Saves the trainer if the loss is the lowest so far; NaN is not. Returns true if it did. For a
  /// metric to maximize, such as accuracy, pass its negative. Throws the errors of
  /// TrainerBase::save(); the loss then does not count.
  bool update(double loss, const TrainerBase& trainer);

  [[nodiscard]] double best() const { return best_; }              ///< The lowest loss so far.
  [[nodiscard]] const std::string& path() const { return path_; }  ///< Path of the file.

 private:
  std::string path_;
  double best_;
};

/// Options of find_learning_rate().
struct LearningRateOptions {
  double first = 1e-7;     ///< Rate of the first update, above 0.
  double last = 10;        ///< Rate of the last update, above `first`.
  int updates = 100;       ///< Number of updates, at least 2; the rate rises by a constant factor.
  double smoothing = 0.9;  ///< Weight of earlier losses in the running mean, from 0 to below 1.
  double divergence = 4;   ///< Stops above this multiple of the lowest smoothed loss; above 1.
};

/// Losses over the learning rate, returned by find_learning_rate().
struct LearningRateCurve {
  std::vector<double> rates;     ///< The rate of each update, increasing.
  std::vector<double> losses;    ///< The loss before the update at this rate.
  std::vector<double> smoothed;  ///< The running mean of `losses`, corrected for its start.
  /// The rate at which the smoothed loss falls most steeply over the logarithm of the rate, by
  /// central differences. 0 if there are less than three losses or the loss does not fall.
  double suggested = 0;
};

/// Trains with a learning rate that rises by a constant factor, to find a good initial rate
/// (Smith 2017, "Cyclical Learning Rates for Training Neural Networks", 3.3). `update` makes one
/// update of the trainer and returns its loss:
/// ```cpp
/// const auto curve = tg::find_learning_rate(trainer, [&] { return trainer.step(next()).loss; });
/// trainer.set_lr(curve.suggested);
/// ```
/// Stops early if the loss diverges or is not finite; that loss is not part of the curve.
/// Afterwards the trainer, with its registered loaders, is as before.
///
/// Throws UserError if an option is out of range, and what `update` throws; the trainer is then
/// also as before.
LearningRateCurve find_learning_rate(AnyTrainer& trainer, const std::function<double()>& update,
                                     const LearningRateOptions& options = {},
                                     Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
