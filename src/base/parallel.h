// SPDX-License-Identifier: MIT
// Threads for one-time work (reading files, compiling shaders, drawing values), and persistent
// threads for repeated work. The launches of the CPU backend use their own
// (backend/cpu/thread_pool.h).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns the number of cores that this process can use: those of the machine, limited by its
// affinity and (on Linux) by the quota of its control group. At least 1.
int usable_cores();

// Calls work(0) to work(count - 1), each once, on at most `most_threads` threads including the
// caller's. If a call throws, no further calls are started. After all have ended, rethrows the
// exception of the call with the smallest index.
void in_parallel(std::size_t count, std::size_t most_threads,
                 const std::function<void(std::size_t)>& work);

// Threads that sleep until there is more work. Once they exist, run() does not allocate.
class ThreadGroup {
 public:
  ThreadGroup() = default;
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;
  ~ThreadGroup();

  // Like in_parallel(), with one thread per call. Only one run at a time.
  template <class Work>
  void run(std::size_t count, const Work& work) {
    run(count, [](const void* of, std::size_t i) { (*static_cast<const Work*>(of))(i); }, &work);
  }

 private:
  using Call = void (*)(const void* work, std::size_t i);
  void run(std::size_t count, Call call, const void* work);
  void take_part(std::unique_lock<std::mutex>& lock);
  void stay();

  std::vector<std::thread> threads_;  // excluding the caller's
  std::mutex mutex_;                  // guards all members below
  std::condition_variable begun_, ended_;
  Call call_ = nullptr;
  const void* work_ = nullptr;
  std::size_t next_ = 0, end_ = 0, busy_ = 0;
  std::exception_ptr error_;
  bool leaving_ = false;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
