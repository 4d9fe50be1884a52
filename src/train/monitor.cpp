// SPDX-License-Identifier: MIT
#include "tensorgrad/train/monitor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/numbers.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

void check_search(const LearningRateOptions& o, const SourceLocation& location) {
  const auto fail = [&](const std::string& what, double got) {
    throw UserError("find_learning_rate: " + what + ", got " + number_text(got), location);
  };
  if (!(o.first > 0) || !std::isfinite(o.first)) fail("first: expected a rate above 0", o.first);
  if (!(o.last > o.first) || !std::isfinite(o.last))
    fail("last: expected a rate above first", o.last);
  if (o.updates < 2) fail("updates: expected at least 2", o.updates);
  if (!(o.smoothing >= 0 && o.smoothing < 1))
    fail("smoothing: expected a number from 0 to below 1", o.smoothing);
  if (!(o.divergence > 1)) fail("divergence: expected a number above 1", o.divergence);
}

// Returns the rate of the steepest fall over equidistant logarithms of the rates.
double steepest(const LearningRateCurve& curve) {
  double slope = 0;
  double rate = 0;
  for (std::size_t i = 1; i + 1 < curve.smoothed.size(); ++i) {
    const double here = curve.smoothed[i + 1] - curve.smoothed[i - 1];
    if (here >= slope) continue;
    slope = here;
    rate = curve.rates[i];
  }
  return rate;
}

// Loads the state that a trainer had, also if an exception passes.
class Restored {
 public:
  Restored(AnyTrainer& trainer, Loc loc) : trainer_(trainer), state_(trainer.save_bytes({}, loc)) {}
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;
  ~Restored() {
    if (state_.empty()) return;
    try {
      trainer_.load(state_);
    } catch (...) {  // the exception that passes is the one to report
    }
  }
  void restore(Loc loc) {
    trainer_.load(state_, loc);
    state_.clear();
  }

 private:
  AnyTrainer& trainer_;
  std::vector<std::byte> state_;
};

}  // namespace

bool EarlyStopping::update(double loss) {
  const bool best = loss < best_;
  if (best) best_ = loss;
  since_ = best ? 0 : since_ + 1;
  return best;
}

bool BestCheckpoint::update(double loss, const TrainerBase& trainer) {
  if (!(loss < best_)) return false;
  trainer.save(path_);
  best_ = loss;
  return true;
}

LearningRateCurve find_learning_rate(AnyTrainer& trainer, const std::function<double()>& update,
                                     const LearningRateOptions& options, Loc loc) {
  check_search(options, loc);
  Restored state(trainer, loc);
  LearningRateCurve curve;
  const double factor = std::log(options.last / options.first) / (options.updates - 1);
  double mean = 0;
  double lowest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < options.updates; ++i) {
    const double rate = options.first * std::exp(factor * i);
    trainer.set_lr(rate, loc);
    const double loss = update();
    mean = options.smoothing * mean + (1 - options.smoothing) * loss;
    const double smoothed = mean / (1 - std::pow(options.smoothing, i + 1));
    if (!std::isfinite(smoothed) || (i > 0 && smoothed > options.divergence * lowest)) break;
    lowest = std::min(lowest, smoothed);
    curve.rates.push_back(rate);
    curve.losses.push_back(loss);
    curve.smoothed.push_back(smoothed);
  }
  state.restore(loc);
  curve.suggested = steepest(curve);
  return curve;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
