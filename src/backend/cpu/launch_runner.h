// SPDX-License-Identifier: MIT
// A launch prepared to run: pointers resolved, sizes fixed. Running it allocates nothing, unless
// it is a custom launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/cpu/index_walker.h"
#include "backend/cpu/memory.h"
#include "backend/cpu/thread_pool.h"
#include "kernel/program.h"

namespace tensorgrad::cpu {

// Number of copies of a constant or uniform value in memory: enough for the widest vector.
inline constexpr std::int64_t kSplatWords = 16;

// Constants replicated kSplatWords times, shared by all launches of an executable.
class ConstPool {
 public:
  const Word* splat(Word bits);

 private:
  std::unordered_map<Word, AlignedBytes> blocks_;
};

// Arguments for preparing a launch.
struct Prepare {
  const Launch& launch;
  ConstPool& constants;
  std::vector<Word*> data;  // start of each binding
  int threads = 1;          // number of threads that share the work
};

// Arguments for running a launch.
struct RunContext {
  ThreadPool& pool;
  const RuntimeScalars& runtime_scalars;
  const std::vector<AlignedBytes>& workers;  // scratch memory of each worker
  std::byte* shared;                         // scratch memory of the launch

  [[nodiscard]] std::byte* scratch(int worker) const {
    return workers[static_cast<std::size_t>(worker)].data();
  }
};

// Waking a spinning worker takes about 1 us, a sleeping one 5 to 10 us. In addition, a core reads
// data just written by another core more slowly than data in its own caches. For work between these
// limits, timing decides whether sharing pays (parallel_tuner.h).
inline constexpr double kWorthSharing = 20000, kIsWorthSharing = 60000;  // nanoseconds of work

// Returns the number of tasks for about `ns` nanoseconds of work that can be cut into `pieces`.
// Returns 1 if `ns` is below `worth_sharing`, otherwise one task per 4 us, at most 64 and at
// most `pieces`.
std::int64_t task_count(double ns, std::int64_t pieces, double worth_sharing = kWorthSharing);
// Number of pieces that suits most work.
inline constexpr std::int64_t kTasks = 12;

class LaunchRunner {
 public:
  LaunchRunner() = default;
  LaunchRunner(const LaunchRunner&) = delete;
  LaunchRunner& operator=(const LaunchRunner&) = delete;
  virtual ~LaunchRunner() = default;

  virtual void run(const RunContext& context) = 0;

  // Scratch memory in bytes, per worker and per launch.
  std::size_t worker_bytes = 0, shared_bytes = 0;
  // True if sharing the work may cost more than it saves (parallel_tuner.h).
  bool small = false;

 protected:
  // Returns task_count() for the whole launch and sets `small`.
  std::int64_t share(double ns, std::int64_t pieces) {
    const std::int64_t tasks = task_count(ns, pieces);
    small = tasks > 1 && ns < kIsWorthSharing;
    return tasks;
  }
};

// Creates the runner of prepare.launch, whose kind is the second argument.
std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const MapLaunch& map);
std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const RowLaunch& row);
std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const ContractionLaunch& product);
std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const ScatterLaunch& scatter);
std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const ScanLaunch& scan);
std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const SortLaunch& sort);

}  // namespace tensorgrad::cpu
