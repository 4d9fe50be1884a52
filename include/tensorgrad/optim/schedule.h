// SPDX-License-Identifier: MIT
// Learning rates as functions of the step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A learning rate as a function of the step, counted from 0 (the value at step t is used in the
// t-th step, as in PyTorch's schedulers). Data, not code: it is saved with a checkpoint. What makes
// one throws UserError on a rate that is negative or not finite, and on counts below 1.
class Schedule {
 public:
  enum class Kind {
    kConstant,
    kLinear,
    kCosine,
    kWarmup,
    kStep,
    kMultiStep,
    kOneCycle,
    kCosineRestarts,
    kExponential,
    kPolynomial,
    kInverseSqrt,
    kSequence,
    kShift
  };

  Schedule(double rate) : a_(rate) {}  // NOLINT(google-explicit-constructor)

  // From `from` to `to` in a straight line over `steps` steps, then `to`.
  static Schedule linear(double from, double to, std::int64_t steps);
  // From `from` to `to` along half a cosine over `steps`
  // steps, then `to` (Loshchilov and Hutter 2017).
  static Schedule cosine(double from, double to, std::int64_t steps);
  // The same over and over, each time from `from`; the i-th time (from 0) over steps * factor^i
  // steps (the same paper; PyTorch's CosineAnnealingWarmRestarts). A factor of at least 1.
  static Schedule cosine_restarts(double from, double to, std::int64_t steps,
                                  std::int64_t factor = 1);
  // to + (from - to) * (1 - t / steps)^power, then `to` (PyTorch's PolynomialLR has to = 0).
  static Schedule polynomial(double from, double to, std::int64_t steps, double power = 1);
  // rate * gamma^t.
  static Schedule exponential(double rate, double gamma);
  // `rate` times gamma for each `every` steps that are done.
  static Schedule step(double rate, std::int64_t every, double gamma);
  // `rate` times gamma for each milestone that is reached. Milestones rise.
  static Schedule multi_step(double rate, std::vector<std::int64_t> milestones, double gamma);
  // Grows linearly to `peak` in `warmup` steps, then falls as 1/sqrt: with s = t + 1, peak *
  // min(s / warmup, sqrt(warmup / s)). (Vaswani et al. 2017, eq. 3, where peak is 1 / sqrt(d_model
  // * warmup).)
  static Schedule inverse_sqrt(double peak, std::int64_t warmup);

  // PyTorch's OneCycleLR (Smith and Topin 2018): up from peak / div_factor to `peak` over
  // `pct_start` of the steps, then down to peak / div_factor / final_div_factor, where it stays.
  // With three phases it first comes down as it went up.
  struct OneCycle {
    double peak = 0;
    std::int64_t steps = 0;
    double pct_start = 0.3;  // in [0, 1]
    bool linear = false;     // else along half a cosine
    double div_factor = 25, final_div_factor = 1e4;
    bool three_phase = false;
  };
  static Schedule one_cycle(const OneCycle& cycle);

  // Grows linearly over the first `steps` steps to what `after` begins with; then `after`, counted
  // from its own 0.
  static Schedule warmup(std::int64_t steps, Schedule after);
  // The first until step milestones[0], the next until milestones[1] ..., each counted from its own
  // 0 (PyTorch's SequentialLR). One milestone less than schedules; milestones rise, from 1 on.
  static Schedule sequence(std::vector<Schedule> parts, std::vector<std::int64_t> milestones);
  // `schedule` from its step `by` on (at least 0). With 1 it is what counts steps from 1: the first
  // step is one away from the beginning, a milestone m is reached in the m-th step.
  static Schedule shift(std::int64_t by, Schedule schedule);

  [[nodiscard]] double at(std::int64_t step) const;
  // Text that parse() reads back, exactly.
  [[nodiscard]] std::string text() const;
  // Throws IoError on what text() does not write.
  static Schedule parse(const std::string& text);

 private:
  explicit Schedule(Kind kind) : kind_(kind) {}
  static Schedule ramp(Kind kind, const std::string& name, double from, double to,
                       std::int64_t steps);
  static Schedule decay(Kind kind, const std::string& name, double rate, double gamma);
  [[nodiscard]] double one_cycle_at(double t) const;
  [[nodiscard]] double restarts_at(std::int64_t step) const;
  [[nodiscard]] double sequence_at(std::int64_t step) const;
  [[nodiscard]] bool valid() const;
  static Schedule parse(const std::vector<std::string>& words, std::size_t& at);

  Kind kind_ = Kind::kConstant;
  double a_ = 0, b_ = 0, c_ = 0, d_ = 0;  // rates, factors, powers: each kind has its own
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> milestones_;
  std::vector<Schedule> parts_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
