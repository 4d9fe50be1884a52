// SPDX-License-Identifier: MIT
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/process.h"
#include "base/threads.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Joins its threads in the destructor, as std::jthread, which libc++ 16 lacks.
struct JoinedThreads {
  JoinedThreads() = default;
  JoinedThreads(const JoinedThreads&) = delete;
  JoinedThreads& operator=(const JoinedThreads&) = delete;
  ~JoinedThreads() {
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<std::thread> threads;
};

}  // namespace

int usable_cores() {
  int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int allowed = os::allowed_cores();  // not considered by hardware_concurrency()
  if (allowed > 0) cores = std::min(allowed, cores);
#if defined(__linux__)
  // "max 100000" or "200000 100000": microseconds of CPU time in a period.
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    const double share = std::strtod(quota.c_str(), nullptr) / period;
    if (share > 0) cores = std::clamp(static_cast<int>(std::ceil(share)), 1, cores);
  }
#endif
  return cores;
}

void in_parallel(std::size_t count, std::size_t most_threads,
                 const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0}, end{count};  // an exception lowers the end
  std::mutex mutex;
  std::exception_ptr error;
  const auto do_some = [&] {
    for (std::size_t i = next++; i < end; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < end) error = std::current_exception();
        end = std::min(i, end.load());
      }
    }
  };
  const std::size_t wanted = kStartsThreads ? std::min(count, most_threads) : 1;
  if (wanted < 2) {
    do_some();
  } else {
    const std::size_t threads = std::min(wanted, static_cast<std::size_t>(usable_cores()));
    JoinedThreads helpers;
    try {
      while (helpers.threads.size() + 1 < threads) helpers.threads.emplace_back(do_some);
    } catch (const std::system_error&) {
      // The system offers no more threads; the existing ones do the work.
    }
    do_some();
  }
  if (error) std::rethrow_exception(error);
}

ThreadGroup::~ThreadGroup() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadGroup::run(std::size_t count, Call call, const void* work) {
  try {
    while (threads_.size() + 1 < count) threads_.emplace_back([this] { stay(); });
  } catch (const std::system_error&) {
    // The system offers no more threads; the existing ones do the work.
  }
  std::unique_lock lock(mutex_);
  call_ = call;
  work_ = work;
  next_ = 0;
  end_ = count;
  begun_.notify_all();
  take_part(lock);
  ended_.wait(lock, [this] { return busy_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// Executes calls until none is left to start.
void ThreadGroup::take_part(std::unique_lock<std::mutex>& lock) {
  while (next_ < end_) {
    const std::size_t i = next_++;
    ++busy_;
    std::exception_ptr thrown;
    lock.unlock();
    try {
      call_(work_, i);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (thrown && i < end_) {  // otherwise, an earlier call threw
      error_ = thrown;
      end_ = i;
    }
    if (--busy_ == 0) ended_.notify_one();
  }
}

void ThreadGroup::stay() {
  std::unique_lock lock(mutex_);
  while (!leaving_) {
    take_part(lock);
    begun_.wait(lock, [this] { return leaving_ || next_ < end_; });
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
