// SPDX-License-Identifier: MIT
// Calls that do not block: futures of C++20 coroutines, and the executors that run the calls.
#pragma once

#include <condition_variable>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Runs functions, later or on other threads. Derive from it to use the threads or the event loop
/// of an application. It must run all posted functions, including those of cancelled calls.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  /// Queues `work`, which does not throw. Any thread can call it.
  virtual void post(std::function<void()> work) = 0;

  /// Runs one queued function on the calling thread and returns true. Returns false if there is
  /// none, or if other threads run them. Future::wait() calls it repeatedly.
  virtual bool run_one() { return false; }
};

/// An executor with its own threads. A function that waits for a queued one runs it on its thread.
/// The destructor waits for the queued functions, unless one of them calls it.
class ThreadExecutor : public Executor {
 public:
  /// Starts `threads` threads, at least 1. Throws UserError if it is less, or if threads cannot be
  /// started.
  explicit ThreadExecutor(int threads = 1);
  ThreadExecutor(const ThreadExecutor&) = delete;
  ThreadExecutor& operator=(const ThreadExecutor&) = delete;
  ~ThreadExecutor() override;

  void post(std::function<void()> work) override;
  bool run_one() override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // the threads' too
};

/// Returns the executor that async() and compile_async() use by default. It has two threads and is
/// never destroyed.
///
/// In browsers it is the event loop of the page or worker. Each function runs as a separate task.
/// While one waits for the GPU, the event loop continues to handle events, but starts no other
/// function of this executor.
Executor& default_executor();

namespace detail {

// Returns a pointer to an executor of the caller, who keeps it alive.
inline std::shared_ptr<Executor> unowned(Executor& executor) {
  return {std::shared_ptr<void>(), &executor};
}

// State shared by a Future and the call that completes it. The call sets a result or an error, then
// calls complete().
class FutureBase {
 public:
  // Before the future is used: who runs the call.
  void set_executor(std::shared_ptr<Executor> executor) { executor_ = std::move(executor); }
  [[nodiscard]] bool ready() const;
  void wait();
  // Runs `then` on completion, at once if that is past.
  void on_ready(std::function<void()> then);
  void set_error(std::exception_ptr error) { error_ = std::move(error); }
  // Tells threads that wait that the call was posted to its executor, so that they can run it.
  void posted();
  // Marks the result as there, and runs what waits for it.
  void complete();

 protected:
  std::exception_ptr error_;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> then_;
  std::shared_ptr<Executor> executor_;  // null: not known
  bool ready_ = false, posted_ = false;
};

template <class T>
class FutureState : public FutureBase {
 public:
  // Sets what `work` returns or throws.
  template <class F>
  void set_from(F& work) {
    try {
      if constexpr (std::is_void_v<T>) {
        work();
      } else {
        value_.emplace(work());
      }
    } catch (...) {
      set_error(std::current_exception());
    }
  }
  T take() {
    if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
    if constexpr (!std::is_void_v<T>) {
      T value = std::move(*value_);
      value_.reset();
      return value;
    }
  }

 private:
  std::optional<std::conditional_t<std::is_void_v<T>, char, T>> value_;
};

template <class T>
struct FuturePromise;

}  // namespace detail

/// The result of an asynchronous call. Movable. Wait for it with get(), or with `co_await` in a
/// coroutine; a coroutine can return a Future itself. The call completes even if the future is
/// destroyed before.
/// ```cpp
/// tg::Future<void> train(tg::AnyTrainer& trainer) {
///   for (int i = 0; i < 100; ++i) show(co_await trainer.run_async(10));
/// }
/// ```
template <class T>
class Future {
 public:
  /// The promise of coroutines that return a Future.
  using promise_type = detail::FuturePromise<T>;  // NOLINT(readability-identifier-naming)

  /// Wraps a shared state; called by async().
  explicit Future(std::shared_ptr<detail::FutureState<T>> state) : state_(std::move(state)) {}

  /// Returns whether the call has completed.
  [[nodiscard]] bool ready() const { return state().ready(); }

  /// Waits until the call has completed. Throws UserError in a program without threads, such as a
  /// page, if the call is suspended; use `co_await`.
  void wait() const { state().wait(); }

  /// Waits for the call and returns its result, or throws what it threw. Throws UserError if the
  /// result was taken before.
  T get() {
    state().wait();
    return std::exchange(state_, nullptr)->take();
  }

  /// Returns an awaitable like the future itself, after which the coroutine resumes on `executor`
  /// instead of the thread that completed the call.
  [[nodiscard]] auto resume_on(Executor& executor) { return Awaiter{take_state(), &executor}; }

  /// Suspends the coroutine until the call has completed. Takes the result as get() does.
  auto operator co_await() { return Awaiter{take_state(), nullptr}; }

 private:
  struct Awaiter {
    std::shared_ptr<detail::FutureState<T>> state;
    Executor* executor;
    [[nodiscard]] bool await_ready() const { return executor == nullptr && state->ready(); }
    void await_suspend(std::coroutine_handle<> coroutine) {
      state->on_ready([coroutine, to = executor] {
        if (to == nullptr) return coroutine.resume();
        to->post([coroutine] { coroutine.resume(); });
      });
    }
    T await_resume() { return state->take(); }
  };

  detail::FutureState<T>& state() const {
    if (state_ == nullptr) throw UserError("Future: the result was taken before");
    return *state_;
  }
  std::shared_ptr<detail::FutureState<T>> take_state() {
    state();
    return std::exchange(state_, nullptr);
  }

  std::shared_ptr<detail::FutureState<T>> state_;
};

namespace detail {

template <class T>
struct FuturePromiseBase {
  std::shared_ptr<FutureState<T>> state = std::make_shared<FutureState<T>>();
  Future<T> get_return_object() { return Future<T>(state); }
  std::suspend_never initial_suspend() { return {}; }
  std::suspend_never final_suspend() noexcept { return {}; }
  void unhandled_exception() {
    state->set_error(std::current_exception());
    state->complete();
  }
};

template <class T>
struct FuturePromise : FuturePromiseBase<T> {
  void return_value(T value) {
    const auto work = [&] { return std::move(value); };
    this->state->set_from(work);
    this->state->complete();
  }
};

template <>
struct FuturePromise<void> : FuturePromiseBase<void> {
  void return_void() { state->complete(); }
};

// A call and its future result. run() does not throw, and is called once.
template <class Result>
struct PreparedCall {
  std::shared_ptr<FutureState<Result>> state;
  std::function<void()> run;
};

template <class Result, class Work>
PreparedCall<Result> prepare_call(Work work) {
  auto state = std::make_shared<FutureState<Result>>();
  // Functions of std::function are copyable; `work` need not be.
  auto shared = std::make_shared<std::optional<Work>>(std::move(work));
  return {state, [state, shared] {
            state->set_from(**shared);
            shared->reset();
          }};
}

}  // namespace detail

/// Queues the call `work()` on `executor` and returns its future result. References captured by
/// `work` must stay valid until then. The call has no order among those of a trainer, and
/// TrainerBase::abort() does not cancel it before it begins: use TrainerBase::async() for that. If
/// `work` returns a reference, the future has a copy.
/// ```cpp
/// tg::Future<tg::Table> table = tg::async([] { return tg::read_csv("data.csv"); });
/// ```
template <class Work>
auto async(Work work, Executor& executor = default_executor()) {
  using Result = std::decay_t<std::invoke_result_t<Work&>>;
  auto call = detail::prepare_call<Result>(std::move(work));
  call.state->set_executor(detail::unowned(executor));
  executor.post([state = call.state, run = std::move(call.run)] {
    run();
    state->complete();
  });
  return Future<Result>(std::move(call.state));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
