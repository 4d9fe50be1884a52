// SPDX-License-Identifier: MIT
// Detects stores of a map that write back the value already there, e.g. all but one row of a
// KV-cache update.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {

// The store writes a new value to elements for which `value` equals `on`.
struct UnchangedTest {
  int value = -1;
  bool on = true;
  bool operator==(const UnchangedTest&) const = default;
};

// Evaluates tests once per run of `run` consecutive elements with equal results, for up to
// kStretchRuns runs at a time.
class UnchangedStores {
 public:
  static constexpr std::int64_t kStretchRuns = 1024;

  // Returns null if all elements may be new, or if testing would cost as much as writing.
  static std::unique_ptr<UnchangedStores> of(const Prepare& prepare);
  UnchangedStores(const Prepare& prepare, ScalarProgram program,
                  const std::vector<UnchangedTest>& tests, std::int64_t run);

  [[nodiscard]] std::int64_t run() const { return run_; }
  [[nodiscard]] std::size_t scratch_bytes() const;
  void start(const RuntimeScalars& runtime_scalars);
  // Tests `count` runs, at most kStretchRuns, starting at run `first`. Returns an array in
  // `scratch` that is nonzero for runs with new values.
  const Word* look(std::int64_t first, std::int64_t count, std::byte* scratch) const {
    Word* found = reinterpret_cast<Word*>(scratch);
    std::fill_n(found, count, Word{0});
    for (std::size_t t = 0; t < tests_.size(); ++t) {
      Frame frame = vector_programs_[t]->frame(scratch + kStretchRuns * sizeof(Word));
      frame.first = first;
      frame.count = count;
      vector_programs_[t]->run(vector_programs_[t]->ops, frame);
      const Word* truth = vector_programs_[t]->result(frame);
      for (std::int64_t i = 0; i < count; ++i)
        found[i] |= static_cast<Word>((truth[i] != 0) == tests_[t].on);
    }
    return found;
  }

 private:
  ScalarProgram program_;  // with one element per run
  std::vector<UnchangedTest> tests_;
  std::int64_t run_;
  std::vector<std::unique_ptr<VectorProgram>> vector_programs_;  // one per test
};

}  // namespace tensorgrad::cpu
