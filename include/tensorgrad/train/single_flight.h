// SPDX-License-Identifier: MIT
// Calls of which only the newest counts: a slider that asks for a prediction with every move.
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

namespace tensorgrad {

// Runs calls of a function on a thread of its own, one after another. While one runs, at most one
// waits: a newer one takes its place. Calls come from any thread and return at once.
//   SingleFlight<HostTensor(std::vector<float>)> predict(run_network);
//   auto answer = predict(pixels);
//   if (const auto result = answer.get()) show(*result);
//
// What a call gives is empty where a newer one has taken its place, or where the object went before
// its turn; what the function throws, get() throws. Of a function that gives void, it is a
// std::monostate.
template <class Signature>
class SingleFlight;

template <class R, class Argument>
class SingleFlight<R(Argument)> {
 public:
  using Value = std::conditional_t<std::is_void_v<R>, std::monostate, R>;
  using Result = std::optional<Value>;

  explicit SingleFlight(std::function<R(Argument)> function)
      : function_(std::move(function)), thread_([this] { work(); }) {}
  SingleFlight(const SingleFlight&) = delete;
  SingleFlight& operator=(const SingleFlight&) = delete;
  // Waits for the call that runs.
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

}  // namespace tensorgrad
