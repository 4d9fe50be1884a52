// SPDX-License-Identifier: MIT
// Calls of a trainer, its objectives and its attached functions, or of a function, are taken one
// after another.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "api/call_queue.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

// Recursive mutex that threads get in the order in which they ask for it. A thread that calls in a
// loop thus lets each waiting one go first; std::recursive_mutex would let it pass hundreds of
// times.
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

// Whose turn it is, for all of them, and what is aborted, for those of one handle.
class Turns {
 public:
  Turns() : shared_(std::make_shared<Shared>()) {}
  // Of another handle, that waits for the same turns.
  [[nodiscard]] std::shared_ptr<Turns> beside() const {
    return std::shared_ptr<Turns>(new Turns(shared_));
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
  explicit Turns(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;
  std::atomic<std::uint64_t> aborts_ = 0;
};

// When an asynchronous call was made. While it runs, its turns take that for their beginning: an
// abort() in between ends them.
class CallTime {
 public:
  explicit CallTime(const Turns& turns) : turns_(&turns), aborts_(turns.aborts()) {}
  [[nodiscard]] bool aborted() const { return turns_->aborts() != aborts_; }
  // What abort() counted when the call that this thread makes was made.
  static std::uint64_t aborts_before(const Turns& turns) {
    return now_ != nullptr && now_->turns_ == &turns ? now_->aborts_ : turns.aborts();
  }
  // Makes it.
  template <class Call>
  void during(Call&& call) const {
    const CallTime* outer = std::exchange(now_, this);
    std::forward<Call>(call)();
    now_ = outer;
  }

 private:
  const Turns* turns_;
  std::uint64_t aborts_;
  inline static thread_local const CallTime* now_ = nullptr;  // NOLINT(*-identifier-naming)
};

[[noreturn]] inline void throw_aborted() { throw AbortedError("the call was aborted"); }

// A call's turn: it ends with an AbortedError where abort() came while it waited, and check() does
// where it came since.
class Turn {
 public:
  explicit Turn(const Turns& turns)
      : turns_(turns), before_(CallTime::aborts_before(turns)), lock_(turns.lock()) {
    check();
  }
  void check() const {
    if (turns_.aborts() != before_) throw_aborted();
  }

 private:
  const Turns& turns_;
  std::uint64_t before_;
  std::unique_lock<FairMutex> lock_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
