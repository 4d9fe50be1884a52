// SPDX-License-Identifier: MIT
#include "train/call_queue.h"

#include <utility>

#include "base/threads.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
void CallQueue::push(Call call, Executor* executor) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (executor == nullptr && own_ == nullptr) {
      own_ = kHasThreads ? std::make_shared<ThreadExecutor>() : unowned(default_executor());
    }
    const std::shared_ptr<Executor> runs = executor != nullptr ? unowned(*executor) : own_;
    call.future->set_executor(runs);
    entries_.push_back({std::move(call), runs});
    first = entries_.size() == 1;
  }
  if (first) post_first();
}

void CallQueue::post_first() {
  std::shared_ptr<FutureBase> future;
  std::shared_ptr<Executor> executor;
  {
    const std::lock_guard lock(mutex_);
    future = entries_.front().call.future;
    executor = entries_.front().executor;
  }
  executor->post([self = shared_from_this()] { self->run_first(); });
  future->posted();
}

void CallQueue::run_first() {
  Call call;
  {
    const std::lock_guard lock(mutex_);
    call = std::move(entries_.front().call);
    running_ = call.owner;
    thread_ = std::this_thread::get_id();
  }
  call.run();
  call.run = nullptr;  // destroys captures before the next call starts
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    entries_.pop_front();
    running_ = nullptr;
    more = !entries_.empty();
  }
  changed_.notify_all();
  // Post the next call first: completing the future may run a coroutine for long.
  if (more) post_first();
  call.future->complete();
}

void CallQueue::wait_for(const void* owner) {
  if (!kHasThreads) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ != owner || thread_ == std::this_thread::get_id(); });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
