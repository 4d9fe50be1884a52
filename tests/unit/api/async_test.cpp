// SPDX-License-Identifier: MIT
// Futures, coroutines and executors.
#include "tensorgrad/train/async.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <thread>

#include "support/manual_executor.h"

namespace tensorgrad {
namespace {

using ::testing::HasSubstr;

TEST(Async, returns_the_result_of_the_call) {
  ThreadExecutor executor;
  EXPECT_EQ(async([] { return 42; }, executor).get(), 42);
  const auto caller = std::this_thread::get_id();
  EXPECT_NE(async([] { return std::this_thread::get_id(); }, executor).get(), caller);
  EXPECT_NE(async([] { return std::this_thread::get_id(); }).get(), caller);
}

TEST(Async, takes_and_returns_move_only_types) {
  auto value = std::make_unique<int>(7);
  Future<std::unique_ptr<int>> future =
      async([value = std::move(value)]() mutable { return std::move(value); });
  EXPECT_EQ(*future.get(), 7);
}

TEST(Async, rethrows_errors_of_the_call) {
  Future<int> future = async([]() -> int { throw ShapeError("no such shape"); });
  try {
    future.get();
    FAIL() << "nothing was thrown";
  } catch (const ShapeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no such shape"));
  }
}

TEST(Async, result_can_be_taken_once) {
  Future<int> future = async([] { return 1; });
  EXPECT_EQ(future.get(), 1);
  EXPECT_THROW(future.get(), UserError);
  EXPECT_THROW(static_cast<void>(future.ready()), UserError);
}

TEST(Async, waiting_runs_queued_calls) {
  test::ManualExecutor executor;
  std::vector<int> order;
  Future<void> first = async([&] { order.push_back(1); }, executor);
  Future<void> second = async([&] { order.push_back(2); }, executor);
  EXPECT_FALSE(second.ready());
  second.get();
  EXPECT_TRUE(first.ready());
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(Async, completes_without_its_future) {
  std::atomic<bool> done = false;
  {
    ThreadExecutor executor;
    static_cast<void>(async([&] { done = true; }, executor));
  }
  EXPECT_TRUE(done);
}

TEST(Async, captures_are_released_with_the_call) {
  test::ManualExecutor executor;
  auto held = std::make_shared<int>(1);
  Future<int> future = async([held] { return *held; }, executor);
  EXPECT_EQ(held.use_count(), 2);
  executor.run_one();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(future.get(), 1);
}

Future<int> sum(Executor& executor) {
  int total = 0;
  for (int i = 1; i <= 3; ++i) total += co_await async([i] { return i; }, executor);
  co_return total;
}

Future<void> fails(Executor& executor) {
  co_await async([] { throw UserError("inside"); }, executor);
}

TEST(Async, coroutines_await_calls) {
  ThreadExecutor executor(2);
  EXPECT_EQ(sum(executor).get(), 6);
  EXPECT_THROW(fails(executor).get(), UserError);
}

TEST(Async, coroutines_resume_on_the_requested_executor) {
  ThreadExecutor calls;
  test::ManualExecutor page;
  std::thread::id resumed;
  const auto body = [&]() -> Future<int> {
    const int value = co_await async([] { return 5; }, calls).resume_on(page);
    resumed = std::this_thread::get_id();
    co_return value;
  };
  Future<int> future = body();
  while (!future.ready()) page.run_one();
  EXPECT_EQ(future.get(), 5);
  EXPECT_EQ(resumed, std::this_thread::get_id());
}

TEST(Async, coroutines_await_ready_futures) {
  test::ManualExecutor executor;
  Future<int> ready = async([] { return 3; }, executor);
  executor.run_one();
  const auto body = [](Future<int> future) -> Future<int> { co_return 2 * co_await future; };
  Future<int> doubled = body(std::move(ready));
  EXPECT_TRUE(doubled.ready());
  EXPECT_EQ(doubled.get(), 6);
}

TEST(Async, needs_a_thread) { EXPECT_THROW(ThreadExecutor(0), UserError); }

}  // namespace
}  // namespace tensorgrad
