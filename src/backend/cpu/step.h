// SPDX-License-Identifier: MIT
// A launch made ready: pointers resolved, sizes fixed. Running it allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/cpu/loader.h"
#include "backend/cpu/memory.h"
#include "backend/cpu/pool.h"
#include "kernel/program.h"

namespace tensorgrad::cpu {

// A constant or uniform value lies as many times one after another as the widest vector has words.
inline constexpr std::int64_t kSplatWords = 16;

// Constants laid out like that, shared by all launches of an executable.
class ConstPool {
 public:
  const Word* splat(Word bits);

 private:
  std::unordered_map<Word, AlignedBytes> blocks_;
};

// What the launches of an executable are given when they are prepared.
struct Prepare {
  const Launch& launch;
  ConstPool& constants;
  std::vector<Word*> data;  // where each binding starts
  int threads = 1;          // that share the work
};

// What they are given when they run.
struct RunContext {
  ThreadPool& pool;
  const HyperRow& hyper;
  const std::vector<AlignedBytes>& workers;  // scratch of each worker
  std::byte* shared;                         // scratch of the launch

  [[nodiscard]] std::byte* scratch(int worker) const {
    return workers[static_cast<std::size_t>(worker)].data();
  }
};

// Waking a spinning worker takes about a microsecond, a sleeping one five to ten; and what another
// core has just written costs more to read than what lies in this one's caches. Of work between the
// two the clock says whether it pays (sharing.h).
inline constexpr double kWorthSharing = 20000, kIsWorthSharing = 60000;  // nanoseconds of work

// The number of tasks for work of about `ns` nanoseconds in all that can be cut into `pieces`: 1
// for less than `worth_sharing`, more tasks than threads otherwise.
std::int64_t task_count(double ns, std::int64_t pieces, double worth_sharing = kWorthSharing);
// Pieces that suit most work.
inline constexpr std::int64_t kTasks = 12;

class Step {
 public:
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;

  virtual void run(const RunContext& context) = 0;

  // Scratch it needs, in bytes: of each worker, and of the launch.
  std::size_t worker_bytes = 0, shared_bytes = 0;
  // There is so little work that sharing it may cost more than it saves (sharing.h).
  bool small = false;

 protected:
  // task_count() of all the work of the step.
  std::int64_t share(double ns, std::int64_t pieces) {
    const std::int64_t tasks = task_count(ns, pieces);
    small = tasks > 1 && ns < kIsWorthSharing;
    return tasks;
  }
};

std::unique_ptr<Step> make_map(const Prepare& prepare);
std::unique_ptr<Step> make_rows(const Prepare& prepare);
std::unique_ptr<Step> make_contraction(const Prepare& prepare);
std::unique_ptr<Step> make_scatter(const Prepare& prepare);
std::unique_ptr<Step> make_scan(const Prepare& prepare);
std::unique_ptr<Step> make_sort(const Prepare& prepare);
std::unique_ptr<Step> make_custom(const Prepare& prepare);
std::unique_ptr<Step> make_attention(const Prepare& prepare);
std::unique_ptr<Step> make_selective_scan(const Prepare& prepare);

}  // namespace tensorgrad::cpu
