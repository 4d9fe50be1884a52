// SPDX-License-Identifier: MIT
// Calls of a trainer, its objectives and its attached functions, or of a function, are taken one
// after another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "tensorgrad/error.h"

namespace tensorgrad::detail {

// Whose turn it is, for all of them, and what is aborted, for those of one handle.
class Turns {
 public:
  Turns() : mutex_(std::make_shared<std::recursive_mutex>()) {}
  // Of another handle, that waits for the same turns.
  [[nodiscard]] std::shared_ptr<Turns> beside() const {
    return std::shared_ptr<Turns>(new Turns(mutex_));
  }

  [[nodiscard]] std::unique_lock<std::recursive_mutex> lock() const {
    return std::unique_lock(*mutex_);
  }
  void abort() { ++aborts_; }
  [[nodiscard]] std::uint64_t aborts() const { return aborts_; }

 private:
  explicit Turns(std::shared_ptr<std::recursive_mutex> mutex) : mutex_(std::move(mutex)) {}

  std::shared_ptr<std::recursive_mutex> mutex_;
  std::atomic<std::uint64_t> aborts_ = 0;
};

// A call's turn: it ends with an AbortedError where abort() came while it waited, and check() does
// where it came since.
class Turn {
 public:
  explicit Turn(const Turns& turns) : turns_(turns), before_(turns.aborts()), lock_(turns.lock()) {
    check();
  }
  void check() const {
    if (turns_.aborts() != before_) throw AbortedError("the call was aborted");
  }

 private:
  const Turns& turns_;
  std::uint64_t before_;
  std::unique_lock<std::recursive_mutex> lock_;
};

}  // namespace tensorgrad::detail
