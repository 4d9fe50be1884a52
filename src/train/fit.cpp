// SPDX-License-Identifier: MIT
#include "tensorgrad/train/fit.h"

#include <algorithm>
#include <chrono>

#include "base/numbers.h"
#include "tensorgrad/train/data_loader.h"
#include "tensorgrad/train/monitor.h"
#include "tensorgrad/train/stepper.h"
#include "trace/source_location.h"
#include "train/trainer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using FitClock = std::chrono::steady_clock;

double seconds_since(FitClock::time_point start) {
  return std::chrono::duration<double>(FitClock::now() - start).count();
}

void check(const FitOptions& options) {
  const auto refuse = [](const std::string& expected, const std::string& got) {
    throw UserError("fit: expected " + expected + ", got " + got);
  };
  if (options.epochs < 1) refuse("at least 1 epoch", std::to_string(options.epochs));
  if (options.patience < 0) refuse("a patience of at least 0", std::to_string(options.patience));
  if (!(options.progress_seconds > 0))
    refuse("progress_seconds above 0", number_text(options.progress_seconds));
}

// The steps of one epoch, and their losses.
class Epoch {
 public:
  Epoch(Stepper& stepper, const FitOptions& options, std::int64_t number, std::int64_t steps,
        Loc loc)
      : stepper_(stepper), options_(options), loc_(loc) {
    progress_.epoch = number;
    progress_.steps = steps;
  }

  void add(const Batch& batch, bool queued) {
    ++progress_.step;
    if (queued) {
      stepper_.submit(batch, loc_);
      ++unread_;
    } else {
      sum_ += stepper_.step(batch, {}, loc_).loss;
    }
    if (seconds_since(reported_) >= options_.progress_seconds) report();
    if (unread_ >= kMaxUnread) read();
  }

  // Reads the losses of all steps and returns the result.
  FitEpoch finish() {
    report();
    return {.epoch = progress_.epoch,
            .loss = progress_.loss,
            .validation = {},
            .seconds = seconds_since(start_)};
  }

 private:
  static constexpr std::int64_t kMaxUnread = 2048;  // losses() returns the last 4096

  void read() {
    for (const float loss : stepper_.losses(loc_)) sum_ += loss;
    unread_ = 0;
  }

  void report() {
    if (unread_ > 0) read();
    progress_.loss = sum_ / static_cast<double>(std::max<std::int64_t>(progress_.step, 1));
    progress_.steps_per_second = static_cast<double>(progress_.step) / seconds_since(start_);
    reported_ = FitClock::now();
    if (options_.on_progress) options_.on_progress(progress_);
  }

  Stepper& stepper_;
  const FitOptions& options_;
  Loc loc_;
  FitProgress progress_;
  double sum_ = 0;
  std::int64_t unread_ = 0;
  FitClock::time_point start_ = FitClock::now(), reported_ = start_;
};

}  // namespace

FitResult Stepper::fit(DataLoader& loader, const FitOptions& options, Loc loc) {
  with_source_location(loc, [&] { check(options); });
  const bool queued = trainer_->objective(index_).can_queue();
  losses(loc);  // those of steps that were queued before
  EarlyStopping stop(options.patience);
  FitResult result;
  for (std::int64_t number = 0; number < options.epochs && !result.stopped; ++number) {
    const LoaderState begin = loader.state();
    Epoch epoch(*this, options, number, loader.batches_per_epoch() - begin.position, loc);
    while (loader.state().epoch == begin.epoch) epoch.add(loader.next(loc), queued);
    FitEpoch done = epoch.finish();
    if (options.validate) done.validation = options.validate();
    done.best = stop.update(done.validation.value_or(done.loss));
    if (done.best) result.best = static_cast<std::size_t>(number);
    if (done.best && options.best_checkpoint)
      with_source_location(loc, [&] { trainer_->save(*options.best_checkpoint, {}); });
    result.epochs.push_back(done);
    const bool wanted = !options.on_epoch || options.on_epoch(done);
    result.stopped = (!wanted || stop.should_stop()) && number + 1 < options.epochs;
  }
  return result;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
