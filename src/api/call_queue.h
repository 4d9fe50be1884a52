// SPDX-License-Identifier: MIT
// Asynchronous calls: one after another in the order in which they were made, each on an executor.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tensorgrad/train/async.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

// Of a trainer with its objectives and attached functions, or of a function. Only the first call
// is posted to its executor, which then posts the next. No lock is held while a call runs, or an
// executor or a future is called: mutex_ guards the members and nothing else.
class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  struct Call {
    std::shared_ptr<FutureBase> future;
    std::function<void()> run;  // sets the future's result; does not throw
    const void* owner;
  };
  // On a thread of the queue's own if there is no executor. Throws UserError if that cannot start.
  void push(Call call, Executor* executor);
  // Waits for the running call of this owner. Does not if this thread makes that call, or if there
  // are no threads: then it is suspended below the caller.
  void wait_for(const void* owner);

 private:
  struct Entry {
    Call call;
    std::shared_ptr<Executor> executor;
  };
  void post_first();
  void run_first();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;  // the first is posted or running
  std::shared_ptr<Executor> own_;
  const void* running_ = nullptr;  // the owner of the call that runs
  std::thread::id thread_;         // which makes it
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
