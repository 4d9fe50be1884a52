// SPDX-License-Identifier: MIT
// Decides by timing whether small launches run on one thread or on the pool. If each thread has its
// own core, a product of ten microseconds takes three fifths of the time on two threads. It takes
// longer than on one thread if another program uses one of the cores, if two threads share a core,
// or if cores are slow to read each other's data.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>

namespace tensorgrad::cpu {

// Tries both variants from time to time: some steps of an executable with small launches on one
// thread, some with the pool. Uses the faster one until the next trial.
class ParallelTuner {
 public:
  using Clock = std::chrono::steady_clock;
  // Steps between trials, and steps per variant of a trial. The first step of each is not timed.
  static constexpr int kCycle = 512, kHalf = 6;

  // Begins a step. Returns whether its small launches are shared.
  bool begin() {
    if (step_ >= 2 * kHalf) return shared_;
    start_ = Clock::now();
    return step_ >= kHalf;
  }
  // Returns the decision of the last trial.
  [[nodiscard]] bool shared() const { return shared_; }
  void end() {
    if (step_ < 2 * kHalf) note(Clock::now() - start_);
    step_ = (step_ + 1) % kCycle;
  }

 private:
  using Times = std::array<Clock::duration, kHalf - 1>;

  void note(Clock::duration time) {
    const int number = step_ % kHalf;
    Times& times = step_ < kHalf ? single_ : together_;
    if (number > 0) times[static_cast<std::size_t>(number) - 1] = time;
    // Requires a gain of 5 %; a smaller one is not worth taking cores from other programs.
    if (step_ == 2 * kHalf - 1) shared_ = median(together_) * 20 < median(single_) * 19;
  }

  static Clock::duration median(Times times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  int step_ = kCycle - 2 * kHalf;  // the first steps are not representative: caches are cold
  bool shared_ = false;
  Clock::time_point start_;
  Times single_ = {}, together_ = {};
};

}  // namespace tensorgrad::cpu
