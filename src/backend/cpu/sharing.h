// SPDX-License-Identifier: MIT
// Whether sharing small launches among threads pays is for the clock to say. Where every thread has
// a core of its own, products of ten microseconds take three fifths of the time on two; where
// another program has one of the cores, two threads share one, or what one core has written takes
// the other long to read, they take longer than on one thread.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>

namespace tensorgrad::cpu {

// Tried in steps of an executable now and then: some with its small launches on one thread, some
// with them shared; until the next trial, what was faster.
class SharingTrial {
 public:
  using Clock = std::chrono::steady_clock;
  // Steps from one trial to the next, and of each half of it; the first of these is not timed.
  static constexpr int kCycle = 512, kHalf = 6;

  // A step begins; are its small launches shared?
  bool begin() {
    if (step_ >= 2 * kHalf) return shared_;
    start_ = Clock::now();
    return step_ >= kHalf;
  }
  // As in the last steps, trials aside.
  [[nodiscard]] bool shared() const { return shared_; }
  void end() {
    if (step_ < 2 * kHalf) note(Clock::now() - start_);
    step_ = (step_ + 1) % kCycle;
  }

 private:
  using Times = std::array<Clock::duration, kHalf - 1>;

  void note(Clock::duration time) {
    const int number = step_ % kHalf;
    Times& times = step_ < kHalf ? alone_ : together_;
    if (number > 0) times[static_cast<std::size_t>(number) - 1] = time;
    // Other programs get a core rather than we a small gain.
    if (step_ == 2 * kHalf - 1) shared_ = median(together_) * 20 < median(alone_) * 19;
  }

  static Clock::duration median(Times times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  int step_ = kCycle - 2 * kHalf;  // the first steps find nothing in the caches
  bool shared_ = false;
  Clock::time_point start_;
  Times alone_ = {}, together_ = {};
};

}  // namespace tensorgrad::cpu
