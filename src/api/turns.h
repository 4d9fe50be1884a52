// SPDX-License-Identifier: MIT
// Calls of a trainer, its objectives and its attached functions, or of a function, are taken one
// after another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "api/call_queue.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

// Whose turn it is, for all of them, and what is aborted, for those of one handle.
class Turns {
 public:
  Turns() : shared_(std::make_shared<Shared>()) {}
  // Of another handle, that waits for the same turns.
  [[nodiscard]] std::shared_ptr<Turns> beside() const {
    return std::shared_ptr<Turns>(new Turns(shared_));
  }

  [[nodiscard]] std::unique_lock<std::recursive_mutex> lock() const {
    return std::unique_lock(shared_->mutex);
  }
  void abort() { ++aborts_; }
  [[nodiscard]] std::uint64_t aborts() const { return aborts_; }
  [[nodiscard]] CallQueue& calls() const { return *shared_->calls; }

 private:
  struct Shared {
    std::recursive_mutex mutex;
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
  inline static thread_local const CallTime* now_ = nullptr;
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
  std::unique_lock<std::recursive_mutex> lock_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
