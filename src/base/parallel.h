// SPDX-License-Identifier: MIT
// Threads for work that is done once (files to read, shaders to compile, values to draw), and those
// that stay for what comes again. Launches of the CPU have threads of their own
// (backend/cpu/pool.h).
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

// The cores that this process may use: of the machine, those that its affinity and (on Linux) the
// quota of its control group leave it. At least 1.
int usable_cores();

// Calls work(0) to work(count - 1), each once, on at most `most_threads` threads, the caller's
// among them. When calls throw, no further ones are begun, and what the one of the smallest number
// threw is thrown on once all have ended.
void in_parallel(std::size_t count, std::size_t most_threads,
                 const std::function<void(std::size_t)>& work);

// Threads that sleep until there is work again, which then allocates nothing.
class Crew {
 public:
  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();

  // As in_parallel() does, on as many threads as there are calls. One run at a time.
  template <class Work>
  void run(std::size_t count, const Work& work) {
    run(count, [](const void* of, std::size_t i) { (*static_cast<const Work*>(of))(i); }, &work);
  }

 private:
  using Call = void (*)(const void* work, std::size_t i);
  void run(std::size_t count, Call call, const void* work);
  void take_part(std::unique_lock<std::mutex>& lock);
  void stay();

  std::vector<std::thread> threads_;  // beside the caller's
  std::mutex mutex_;                  // of all that follows
  std::condition_variable begun_, ended_;
  Call call_ = nullptr;
  const void* work_ = nullptr;
  std::size_t next_ = 0, end_ = 0, busy_ = 0;
  std::exception_ptr error_;
  bool leaving_ = false;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
