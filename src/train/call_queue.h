// SPDX-License-Identifier: MIT
// A queue of asynchronous calls. They run one after another, in the order in which they are made,
// each on its executor.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tensorgrad/train/async.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

// The queue of a trainer with its objectives and attached functions, or of a function. Only the
// first call is posted to its executor, which then posts the next. mutex_ only guards the members:
// no lock is held while a call runs or an executor or a future is called.
class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  struct Call {
    std::shared_ptr<FutureBase> future;
    std::function<void()> run;  // sets the result of the future; does not throw
    const void* owner;
  };
  // Appends a call. Without an executor, it runs on a thread of the queue. Throws UserError if that
  // thread cannot start.
  void push(Call call, Executor* executor);
  // Waits for the running call of this owner. Returns at once if this thread makes that call, or on
  // platforms without threads, where that call is suspended below the caller.
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
  std::deque<Entry> entries_;  // the first one is posted or running
  std::shared_ptr<Executor> own_;
  const void* running_ = nullptr;  // the owner of the running call
  std::thread::id thread_;         // the thread that runs it
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
