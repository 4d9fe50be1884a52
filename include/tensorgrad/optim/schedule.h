// SPDX-License-Identifier: MIT
// Learning-rate schedules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Learning rate as a function of the step t, counted from 0 as in PyTorch's schedulers. With
/// gradient accumulation, t counts updates. A schedule is plain data, so that checkpoints can store
/// it.
///
/// Functions that create a schedule throw UserError if a rate, `gamma` or `power` is negative or
/// not finite, or if a number of steps is less than 1.
class Schedule {
 public:
  /// Kind of a schedule, one for each function that creates one.
  enum class Kind {
    kConstant,        ///< Schedule(double).
    kLinear,          ///< linear().
    kCosine,          ///< cosine().
    kWarmup,          ///< warmup().
    kStep,            ///< step().
    kMultiStep,       ///< multi_step().
    kOneCycle,        ///< one_cycle().
    kCosineRestarts,  ///< cosine_restarts().
    kExponential,     ///< exponential().
    kPolynomial,      ///< polynomial().
    kInverseSqrt,     ///< inverse_sqrt().
    kSequence,        ///< sequence().
    kShift            ///< shift().
  };

  /// Creates a constant rate. It is checked later, by compile() and Stepper::set_lr().
  Schedule(double rate) : a_(rate) {}  // NOLINT(google-explicit-constructor)

  /// Returns a linear schedule: `from` to `to` over `steps` steps, then `to`.
  static Schedule linear(double from, double to, std::int64_t steps);

  /// Returns a cosine schedule: `from` to `to` along half a cosine over `steps` steps, then `to`
  /// (Loshchilov and Hutter 2017; PyTorch's `CosineAnnealingLR`).
  static Schedule cosine(double from, double to, std::int64_t steps);

  /// Returns a schedule of cosine() cycles, each from `from` to `to`. Cycle i, counted from 0,
  /// takes steps * factor^i steps (PyTorch's `CosineAnnealingWarmRestarts`). Throws UserError if
  /// `factor` is less than 1.
  static Schedule cosine_restarts(double from, double to, std::int64_t steps,
                                  std::int64_t factor = 1);

  /// Returns a polynomial schedule: to + (from - to) * (1 - t / steps)^power, then `to`. PyTorch's
  /// `PolynomialLR` has `to` = 0.
  static Schedule polynomial(double from, double to, std::int64_t steps, double power = 1);

  /// Returns an exponential schedule: rate * gamma^t (PyTorch's `ExponentialLR`).
  static Schedule exponential(double rate, double gamma);

  /// Returns a schedule that multiplies the rate by `gamma` every `every` steps (PyTorch's
  /// `StepLR`).
  static Schedule step(double rate, std::int64_t every, double gamma);

  /// Returns a schedule that multiplies the rate by `gamma` at each milestone (PyTorch's
  /// `MultiStepLR`). Throws UserError unless the milestones are in ascending order.
  static Schedule multi_step(double rate, std::vector<std::int64_t> milestones, double gamma);

  /// Returns the schedule of Vaswani et al. 2017 (eq. 3): a linear increase to `peak` over `warmup`
  /// steps, then a decrease with 1/sqrt. With s = t + 1 it is peak * min(s / warmup, sqrt(warmup /
  /// s)). The paper's `peak` is 1 / sqrt(d_model * warmup).
  static Schedule inverse_sqrt(double peak, std::int64_t warmup);

  /// Options of one_cycle(), with the defaults of PyTorch's `OneCycleLR`.
  struct OneCycle {
    double peak = 0;         ///< Highest rate, `max_lr` in PyTorch.
    std::int64_t steps = 0;  ///< Length of the whole cycle.
    double pct_start = 0.3;  ///< Fraction of the steps that increase the rate, in [0, 1].
    bool linear = false;     ///< Linear instead of cosine segments.

    /// The rate starts at peak / div_factor and ends at peak / div_factor / final_div_factor. Both
    /// must be greater than 0.
    double div_factor = 25, final_div_factor = 1e4;

    bool three_phase = false;  ///< First returns to the initial rate, as fast as it increased.
  };

  /// Returns a one-cycle schedule (Smith and Topin 2018; PyTorch's `OneCycleLR`). The rate
  /// increases to the peak, decreases to the final rate, and stays there. Throws UserError if an
  /// option is out of range.
  static Schedule one_cycle(const OneCycle& cycle);

  /// Returns a schedule with a linear warmup: after(0) * (t + 1) / (steps + 1) for the first
  /// `steps` steps, then `after` from its step 0.
  static Schedule warmup(std::int64_t steps, Schedule after);

  /// Returns several schedules in sequence (PyTorch's `SequentialLR`). Schedule i ends at step
  /// milestones[i], and each one starts at its own step 0. Throws UserError unless there is one
  /// milestone fewer than schedules, and milestones are ascending and at least 1.
  static Schedule sequence(std::vector<Schedule> parts, std::vector<std::int64_t> milestones);

  /// Returns a schedule that starts at step `by` of another one. With `by` = 1, steps count from 1:
  /// milestone m is reached in the m-th step. Throws UserError if `by` is negative.
  static Schedule shift(std::int64_t by, Schedule schedule);

  /// Returns the rate at a step, counted from 0.
  [[nodiscard]] double at(std::int64_t step) const;

  /// Returns a text from which parse() restores exactly this schedule.
  [[nodiscard]] std::string text() const;

  /// Returns the schedule of a text made by text(). Throws IoError if the text is malformed.
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
  double a_ = 0, b_ = 0, c_ = 0, d_ = 0;  // their meaning depends on kind_
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> milestones_;
  std::vector<Schedule> parts_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
