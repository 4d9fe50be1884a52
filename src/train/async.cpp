// SPDX-License-Identifier: MIT
// Executors, and waiting for futures.
#include "tensorgrad/train/async.h"

#include <deque>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/event_loop.h"
#include "base/threads.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct ThreadExecutor::Impl {
  // The executor that owns this thread.
  inline static thread_local Impl* current = nullptr;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool leaving = false;
  std::vector<std::thread> threads;

  // Returns when all threads except the caller's have ended.
  void leave() {
    {
      const std::lock_guard lock(mutex);
      leaving = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) {
      if (thread.get_id() == std::this_thread::get_id()) {
        thread.detach();
      } else {
        thread.join();
      }
    }
  }

  // Runs the first function, if there is one, without holding the lock.
  bool run_first(std::unique_lock<std::mutex>& lock) {
    if (queue.empty()) return false;
    std::function<void()> next = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    next();
    next = nullptr;  // before locking: the destructor may call back
    lock.lock();
    return true;
  }

  void work() {
    current = this;
    std::unique_lock lock(mutex);
    do {
      changed.wait(lock, [&] { return leaving || !queue.empty(); });
    } while (run_first(lock));
  }
};

ThreadExecutor::ThreadExecutor(int threads) : impl_(std::make_shared<Impl>()) {
  if (threads < 1) {
    throw UserError("ThreadExecutor: expected at least 1 thread, got " + std::to_string(threads));
  }
  try {
    for (int i = 0; i < threads; ++i) impl_->threads.emplace_back([impl = impl_] { impl->work(); });
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

bool ThreadExecutor::run_one() {
  if (Impl::current != impl_.get()) return false;
  std::unique_lock lock(impl_->mutex);
  return impl_->run_first(lock);
}

#ifdef __EMSCRIPTEN__
namespace {

class EventLoop : public Executor {
 public:
  void post(std::function<void()> work) override { post_to_event_loop(std::move(work)); }
  bool run_one() override { return run_posted(); }
};

}  // namespace
#endif

Executor& default_executor() {
  // Never destroyed: calls may still be running during static destruction.
#ifdef __EMSCRIPTEN__
  static Executor& executor = *new EventLoop;
#else
  static Executor& executor = *new ThreadExecutor(2);
#endif
  return executor;
}

namespace detail {

bool FutureBase::ready() const {
  const std::lock_guard lock(mutex_);
  return ready_;
}

void FutureBase::wait() {
  // The future of a coroutine does not know which executor completes it.
  Executor* executor = executor_.get();
  if (executor == nullptr && !kHasThreads) executor = &default_executor();
  std::unique_lock lock(mutex_);
  while (!ready_) {
    posted_ = false;
    if (executor != nullptr) {
      lock.unlock();
      const bool ran = executor->run_one();
      lock.lock();
      if (ran) continue;
    }
    if (!kHasThreads && !ready_ && !posted_)
      throw UserError(
          "Future: the call is suspended, and waiting would block the page; use co_await");
    changed_.wait(lock, [&] { return ready_ || posted_; });
  }
}

void FutureBase::posted() {
  {
    const std::lock_guard lock(mutex_);
    posted_ = true;
  }
  changed_.notify_all();
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
