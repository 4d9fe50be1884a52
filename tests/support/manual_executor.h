// SPDX-License-Identifier: MIT
// An executor that the test polls, as the main loop of a game does.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "tensorgrad/train/async.h"

namespace tensorgrad::test {

// Runs posted work on the caller's thread when run_one() is called.
class ManualExecutor : public Executor {
 public:
  void post(std::function<void()> work) override {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  bool run_one() override {
    std::function<void()> next;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty()) return false;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    next();
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> queue_;
};

}  // namespace tensorgrad::test
