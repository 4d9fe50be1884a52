// SPDX-License-Identifier: MIT
// Finds out which elements of a map change nothing: where a line of a cache is filled, all others
// get what they hold already.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/tape.h"

namespace tensorgrad::cpu {

// Where `value` is `on` for an element, its store writes something new.
struct GuardTest {
  int value = -1;
  bool on = true;
  bool operator==(const GuardTest&) const = default;
};

// Tests that are the same for `run` elements in a row are made once for them, and for a stretch of
// elements at a time.
class Guard {
 public:
  static constexpr std::int64_t kStretchRuns = 1024;

  // Null where the launch writes something new everywhere, or finding out would cost as much.
  static std::unique_ptr<Guard> of(const Prepare& prepare);
  Guard(const Prepare& prepare, ScalarProgram program, const std::vector<GuardTest>& tests,
        std::int64_t run);

  [[nodiscard]] std::int64_t run() const { return run_; }
  [[nodiscard]] std::size_t scratch_bytes() const;
  void start(const HyperRow& hyper);
  // For `count` runs from run number `first` on, at most kStretchRuns: not 0 where one of the tests
  // says that something is new. In `scratch`.
  const Word* look(std::int64_t first, std::int64_t count, std::byte* scratch) const {
    Word* found = reinterpret_cast<Word*>(scratch);
    std::fill_n(found, count, Word{0});
    for (std::size_t t = 0; t < tests_.size(); ++t) {
      Frame frame = tapes_[t]->frame(scratch + kStretchRuns * sizeof(Word));
      frame.first = first;
      frame.count = count;
      tapes_[t]->run(tapes_[t]->ops, frame);
      const Word* truth = tapes_[t]->result(frame);
      for (std::int64_t i = 0; i < count; ++i)
        found[i] |= static_cast<Word>((truth[i] != 0) == tests_[t].on);
    }
    return found;
  }

 private:
  ScalarProgram program_;  // for a run as an element
  std::vector<GuardTest> tests_;
  std::int64_t run_;
  std::vector<std::unique_ptr<Tape>> tapes_;  // of each test
};

}  // namespace tensorgrad::cpu
