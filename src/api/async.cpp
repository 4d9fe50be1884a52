// SPDX-License-Identifier: MIT
// Executors and the waiting of futures.
#include "tensorgrad/train/async.h"

#include <deque>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace tensorgrad::inline TENSORGRAD_ABI {

struct ThreadExecutor::Impl {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool leaving = false;
  std::vector<std::thread> threads;

  // Returns when all threads have ended.
  void leave() {
    {
      const std::lock_guard lock(mutex);
      leaving = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return leaving || !queue.empty(); });
      if (queue.empty()) return;
      std::function<void()> next = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      next();
      next = nullptr;  // what it holds goes without the lock
      lock.lock();
    }
  }
};

ThreadExecutor::ThreadExecutor(int threads) : impl_(std::make_unique<Impl>()) {
  if (threads < 1) {
    throw UserError("ThreadExecutor: expected at least 1 thread, got " + std::to_string(threads));
  }
  try {
    for (int i = 0; i < threads; ++i) impl_->threads.emplace_back([this] { impl_->work(); });
  } catch (const std::system_error& error) {
    impl_->leave();
    throw UserError(std::string("ThreadExecutor: cannot start a thread: ") + error.what());
  }
}

ThreadExecutor::~ThreadExecutor() { impl_->leave(); }

void ThreadExecutor::post(std::function<void()> work) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->queue.push_back(std::move(work));
  }
  impl_->changed.notify_one();
}

Executor& default_executor() {
  // Never destroyed: calls may still be running when static objects go.
  static Executor& executor = *new ThreadExecutor(2);
  return executor;
}

namespace detail {

bool FutureBase::ready() const {
  const std::lock_guard lock(mutex_);
  return ready_;
}

void FutureBase::wait() {
  if (executor_ != nullptr) {
    while (!ready() && executor_->run_one()) {
    }
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_; });
}

void FutureBase::on_ready(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (!ready_) {
      then_ = std::move(then);
      return;
    }
  }
  then();
}

void FutureBase::complete() {
  std::function<void()> then;
  {
    const std::lock_guard lock(mutex_);
    ready_ = true;
    then = std::move(then_);
  }
  changed_.notify_all();
  if (then) then();
}

}  // namespace detail

}  // namespace tensorgrad::inline TENSORGRAD_ABI
