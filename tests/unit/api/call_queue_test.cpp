// SPDX-License-Identifier: MIT
// The order of asynchronous calls, and who waits for them.
#include "train/call_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "train/call_lock.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

template <class Work>
auto push(const CallLock& call_lock, Work work, Executor* executor = nullptr) {
  using Result = std::invoke_result_t<Work&>;
  auto call = prepare_call<Result>(std::move(work));
  call_lock.calls().push({call.state, std::move(call.run), &call_lock}, executor);
  return Future<Result>(std::move(call.state));
}

TEST(CallQueue, many_threads_push_calls_that_run_one_after_another) {
  const CallLock call_lock;
  ThreadExecutor other(3);
  std::vector<std::vector<int>> seen(4);  // by caller; only calls write it
  std::vector<std::thread> callers;
  std::vector<std::vector<Future<int>>> futures(4);
  for (std::size_t t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const auto call = [&seen, t, i] {
          seen[t].push_back(i);
          for (const auto& each : seen) {
            if (each.size() > 200) return -1;
          }
          return i;
        };
        futures[t].push_back(push(call_lock, call, i % 2 == 0 ? nullptr : &other));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (auto& each : futures) {
    for (int i = 0; i < 200; ++i) EXPECT_EQ(each[static_cast<std::size_t>(i)].get(), i);
  }
  std::vector<int> in_order(200);
  std::iota(in_order.begin(), in_order.end(), 0);
  for (const auto& each : seen) EXPECT_EQ(each, in_order);
}

TEST(CallQueue, next_call_does_not_wait_for_continuations) {
  const CallLock call_lock;
  const auto body = [&]() -> Future<int> {
    const int first = co_await push(call_lock, [] { return 1; });
    co_return first + push(call_lock, [] { return 2; }).get();
  };
  EXPECT_EQ(body().get(), 3);
}

TEST(CallQueue, waits_for_the_running_call_of_one_owner) {
  const CallLock call_lock;
  const auto concurrent = call_lock.shared_lock();
  std::atomic<bool> begun = false, go = false, ended = false;
  Future<void> call = push(call_lock, [&] {
    begun = true;
    while (!go) std::this_thread::yield();
    ended = true;
  });
  while (!begun) std::this_thread::yield();
  call_lock.calls().wait_for(concurrent.get());  // the call of another owner
  EXPECT_FALSE(ended);
  go = true;
  call_lock.calls().wait_for(&call_lock);
  EXPECT_TRUE(ended);
  call.get();
  push(call_lock, [&] {
    call_lock.calls().wait_for(&call_lock);
  }).get();  // a call does not wait for itself
}

TEST(CallQueue, can_be_destroyed_on_its_own_thread) {
  for (int i = 0; i < 50; ++i) {
    auto call_lock = std::make_shared<CallLock>();
    std::atomic<bool> gone = false;
    Future<void> call = push(*call_lock, [] {});
    const auto body = [](Future<void> awaited, std::shared_ptr<CallLock> held,
                         std::atomic<bool>& done) -> Future<void> {
      co_await awaited;
      held.reset();
      done = true;
    };
    Future<void> coroutine = body(std::move(call), std::move(call_lock), gone);
    coroutine.get();
    EXPECT_TRUE(gone);
  }
}

TEST(CallTime, later_abort_ends_the_call) {
  CallLock call_lock, other;
  const CallTime made(call_lock);
  other.abort();
  EXPECT_FALSE(made.aborted());
  made.during([&] { EXPECT_NO_THROW(ScopedCall{call_lock}); });
  call_lock.abort();
  EXPECT_TRUE(made.aborted());
  made.during([&] {
    EXPECT_THROW(ScopedCall{call_lock}, AbortedError);
    EXPECT_NO_THROW(ScopedCall{other});
  });
  EXPECT_NO_THROW(ScopedCall{call_lock});
}

}  // namespace
}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
