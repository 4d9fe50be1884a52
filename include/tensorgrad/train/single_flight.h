// SPDX-License-Identifier: MIT
// Background execution of only the newest call, for example of the prediction that follows a
// slider.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Runs a function on a background thread, one call at a time. At most one call waits while another
/// runs; a newer call replaces it. Calls can come from any thread and return a future immediately.
/// ```cpp
/// tg::SingleFlight<tg::HostTensor(std::vector<float>)> predict(run_network);
/// auto answer = predict(pixels);
/// if (const auto result = answer.get()) show(*result);
/// ```
/// The result of a call is empty if a newer call replaced it, or if the object was destroyed before
/// the call started. If the function throws, the future's `get()` rethrows the exception.
template <class Signature>
class SingleFlight;

/// Specialization for functions of one argument.
template <class R, class Argument>
class SingleFlight<R(Argument)> {
 public:
  /// Return type of the function; `std::monostate` if that is void.
  using Value = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

  /// Result of a call, empty if the call was dropped.
  using Result = std::optional<Value>;

  /// Starts the thread. The function is called only from it.
  explicit SingleFlight(std::function<R(Argument)> function)
      : function_(std::move(function)), thread_([this] { work(); }) {}

  SingleFlight(const SingleFlight&) = delete;
  SingleFlight& operator=(const SingleFlight&) = delete;

  /// Drops the waiting call and waits for the running one.
  ~SingleFlight() {
    std::optional<Call> dropped;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      dropped.swap(waiting_);
    }
    if (dropped) dropped->promise.set_value(std::nullopt);
    wake_.notify_one();
    thread_.join();
  }

  /// Schedules a call, replacing the waiting one, and returns its future.
  std::future<Result> operator()(Argument argument) {
    Call call{std::move(argument), {}};
    std::future<Result> result = call.promise.get_future();
    std::optional<Call> replaced(std::move(call));
    {
      const std::lock_guard lock(mutex_);
      replaced.swap(waiting_);
    }
    if (replaced) replaced->promise.set_value(std::nullopt);
    wake_.notify_one();
    return result;
  }

 private:
  struct Call {
    std::decay_t<Argument> argument;
    std::promise<Result> promise;
  };

  void work() {
    for (;;) {
      std::optional<Call> call;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stopping_ || waiting_; });
        if (stopping_) return;
        call.swap(waiting_);
      }
      try {
        call->promise.set_value(value_of(call->argument));
      } catch (...) {
        call->promise.set_exception(std::current_exception());
      }
    }
  }

  Value value_of(std::decay_t<Argument>& argument) {
    if constexpr (std::is_void_v<R>) {
      function_(argument);
      return {};
    } else {
      return function_(argument);
    }
  }

  std::function<R(Argument)> function_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Call> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
