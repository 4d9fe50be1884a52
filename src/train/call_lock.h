// SPDX-License-Identifier: MIT
// Serializes the calls of a trainer, its objectives and its attached functions, or of a function.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "tensorgrad/error.h"
#include "train/call_queue.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

// A recursive mutex that threads acquire in the order in which they request it. A thread that calls
// in a loop lets each waiting thread go first; with std::recursive_mutex, it could reacquire the
// lock hundreds of times.
class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    if (depth_ == 0 || owner_ != std::this_thread::get_id()) {
      const std::uint64_t ticket = next_++;
      changed_.wait(lock, [&] { return served_ == ticket; });
      owner_ = std::this_thread::get_id();
    }
    ++depth_;
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      if (--depth_ > 0) return;
      ++served_;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0, served_ = 0;  // tickets; the owner has number served_
  std::thread::id owner_;
  int depth_ = 0;
};

// The call lock, shared by several handles, and a count of abort() for each handle.
class CallLock {
 public:
  CallLock() : shared_(std::make_shared<Shared>()) {}
  // Returns an object for another handle that shares the lock.
  [[nodiscard]] std::shared_ptr<CallLock> shared_lock() const {
    return std::shared_ptr<CallLock>(new CallLock(shared_));
  }

  [[nodiscard]] std::unique_lock<FairMutex> lock() const {
    return std::unique_lock(shared_->mutex);
  }
  void abort() { ++aborts_; }
  [[nodiscard]] std::uint64_t aborts() const { return aborts_; }
  [[nodiscard]] CallQueue& calls() const { return *shared_->calls; }

 private:
  struct Shared {
    FairMutex mutex;
    std::shared_ptr<CallQueue> calls = std::make_shared<CallQueue>();
  };
  explicit CallLock(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;
  std::atomic<std::uint64_t> aborts_ = 0;
};

// The time at which an asynchronous call was made. An abort() since then also aborts the calls that
// it makes while it runs.
class CallTime {
 public:
  explicit CallTime(const CallLock& call_lock)
      : call_lock_(&call_lock), aborts_(call_lock.aborts()) {}
  [[nodiscard]] bool aborted() const { return call_lock_->aborts() != aborts_; }
  // Returns the abort count at the time when the current asynchronous call of this thread was made,
  // or the current count outside such a call.
  static std::uint64_t aborts_before(const CallLock& call_lock) {
    return now_ != nullptr && now_->call_lock_ == &call_lock ? now_->aborts_ : call_lock.aborts();
  }
  // Runs `call` as that asynchronous call.
  template <class Call>
  void during(Call&& call) const {
    const CallTime* outer = std::exchange(now_, this);
    std::forward<Call>(call)();
    now_ = outer;
  }

 private:
  const CallLock* call_lock_;
  std::uint64_t aborts_;
  inline static thread_local const CallTime* now_ = nullptr;  // NOLINT(*-identifier-naming)
};

[[noreturn]] inline void throw_aborted() { throw AbortedError("the call was aborted"); }

// Holds the call lock. The constructor throws AbortedError if abort() was called while it waited;
// check() throws if it was called since.
class ScopedCall {
 public:
  explicit ScopedCall(const CallLock& call_lock)
      : call_lock_(call_lock),
        before_(CallTime::aborts_before(call_lock)),
        lock_(call_lock.lock()) {
    check();
  }
  void check() const {
    if (call_lock_.aborts() != before_) throw_aborted();
  }

 private:
  const CallLock& call_lock_;
  std::uint64_t before_;
  std::unique_lock<FairMutex> lock_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
