// SPDX-License-Identifier: MIT
// Training over the batches of a data loader, epoch by epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tensorgrad/data/file_source.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Progress within an epoch of Stepper::fit().
struct FitProgress {
  std::int64_t epoch = 0;       ///< Epoch of this call, counted from 0.
  std::int64_t step = 0;        ///< Number of steps done in the epoch.
  std::int64_t steps = 0;       ///< Number of steps of the whole epoch.
  double loss = 0;              ///< Mean loss of the steps done in the epoch.
  double steps_per_second = 0;  ///< Since the epoch began.
};

/// Result of an epoch of Stepper::fit().
struct FitEpoch {
  std::int64_t epoch = 0;            ///< Epoch of this call, counted from 0.
  double loss = 0;                   ///< Mean loss of its steps.
  std::optional<double> validation;  ///< Result of FitOptions::validate.
  bool best = false;                 ///< True if it is the best epoch so far.
  double seconds = 0;                ///< Time of the steps, without the validation.
};

/// Options of Stepper::fit().
struct FitOptions {
  std::int64_t epochs = 1;  ///< Number of epochs, at least 1.

  /// Called after each epoch. Returns the validation loss or another value to be minimized. If it
  /// is empty, the mean loss of the epoch takes its place.
  std::function<double()> validate = {};

  int patience = 0;  ///< Stops after this many epochs in a row that are not the best; 0: never.

  /// File for the checkpoint of the best epoch so far, written after each new best epoch.
  std::optional<FileSink> best_checkpoint = {};

  /// Called about every `progress_seconds`, and at the end of each epoch. It must not train.
  std::function<void(const FitProgress&)> on_progress = {};
  double progress_seconds = 0.5;  ///< More than 0. Each report waits for the queued steps.

  /// Called after each epoch, its validation and its checkpoint. Returns false to stop.
  std::function<bool(const FitEpoch&)> on_epoch = {};
};

/// Result of Stepper::fit().
struct FitResult {
  std::vector<FitEpoch> epochs;  ///< In order.
  std::size_t best = 0;          ///< Index of the best epoch; 0 if all values are NaN.
  bool stopped = false;          ///< True if `patience` or `on_epoch` ended the training early.
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
