// SPDX-License-Identifier: MIT
// The thread pool: every task runs once, each worker number is on one thread, and no task is lost
// if workers start late.
#include "backend/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "backend/cpu/launch_runner.h"
#include "backend/cpu/parallel_tuner.h"

namespace tensorgrad::cpu {
namespace {

TEST(CpuTasks, tiny_work_stays_on_one_thread) {
  for (const double ns : {0.0, 100.0, 19999.0}) EXPECT_EQ(task_count(ns, 1000), 1) << ns;
  EXPECT_GT(task_count(20001, 1000), 1);
}

TEST(CpuTasks, do_not_exceed_the_pieces_and_have_a_minimum_size) {
  EXPECT_EQ(task_count(1e9, 1), 1);
  EXPECT_EQ(task_count(1e9, 7), 7);
  for (const double ns : {3e4, 1e5, 1e6, 1e12}) {
    const std::int64_t tasks = task_count(ns, 1 << 20);
    EXPECT_GE(ns / static_cast<double>(tasks), 4000) << ns;
    EXPECT_LE(tasks, 64) << ns;
  }
  EXPECT_EQ(task_count(1e12, 1 << 20), 64);
}

TEST(CpuPool, runs_every_task_once) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int round = 0; round < 300; ++round) {
      const std::int64_t tasks = round % 17;
      std::vector<int> seen(static_cast<std::size_t>(tasks), 0);  // not atomic: no task is shared
      pool.parallel_for(tasks, [&](std::int64_t i, int) { ++seen[static_cast<std::size_t>(i)]; });
      EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), tasks);
    }
  }
}

TEST(CpuPool, a_worker_number_is_on_one_thread_at_a_time) {
  ThreadPool pool(4);
  std::vector<std::int64_t> sums(4, 0);  // not atomic: workers must not share
  for (int round = 0; round < 100; ++round) {
    pool.parallel_for(64,
                      [&](std::int64_t i, int w) { sums.at(static_cast<std::size_t>(w)) += i; });
  }
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), std::int64_t{0}), 100 * 63 * 64 / 2);
}

TEST(CpuPool, thread_gets_the_same_tasks_in_every_loop) {
  ThreadPool pool(2);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> there{0};
    std::vector<int> by(2, -1);
    pool.parallel_for(2, [&](std::int64_t i, int w) {
      there.fetch_add(1);
      while (there.load() < 2) std::this_thread::yield();  // so that each runs one task
      by[static_cast<std::size_t>(i)] = w;
    });
    EXPECT_EQ(by, (std::vector<int>{0, 1}));
  }
}

TEST(CpuPool, takes_over_tasks_of_a_busy_thread) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  std::vector<int> by(8, -1);
  pool.parallel_for(8, [&](std::int64_t i, int w) {
    by[static_cast<std::size_t>(i)] = w;
    done.fetch_add(1);
    while (w == 1 && done.load() < 8) std::this_thread::yield();  // worker 1 keeps its first task
  });
  EXPECT_LE(std::count(by.begin(), by.end(), 1), 1);
  EXPECT_EQ(done.load(), 8);
}

TEST(CpuPool, wakes_workers_that_sleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> done{0};
    pool.parallel_for(8, [&](std::int64_t, int) { done.fetch_add(1); });
    EXPECT_EQ(done.load(), 8);
  }
}

TEST(CpuPool, writes_of_one_loop_are_visible_in_the_next) {
  ThreadPool pool(4);
  std::vector<int> x(256, 0), y(256, 0);
  for (int round = 0; round < 200; ++round) {
    pool.parallel_for(256, [&](std::int64_t i, int) { ++x[static_cast<std::size_t>(i)]; });
    pool.parallel_for(256, [&](std::int64_t i, int) {
      y[static_cast<std::size_t>(i)] += x[static_cast<std::size_t>(255 - i)];
    });
  }
  for (const int v : y) EXPECT_EQ(v, 200 * 201 / 2);
}

TEST(CpuPool, ends_while_workers_sleep_or_spin) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(4);
    if (round % 2 == 0) pool.parallel_for(4, [](std::int64_t, int) {});
  }
}

void pass_time(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(CpuSharing, uses_the_faster_mode_of_the_last_trial) {
  ParallelTuner sharing;
  int shared_steps = 0;
  const auto cycle = [&](int alone_us, int shared_us) {
    shared_steps = 0;
    bool shared = false;
    for (int i = 0; i < ParallelTuner::kCycle; ++i) {
      shared = sharing.begin();
      shared_steps += shared ? 1 : 0;
      pass_time(std::chrono::microseconds(shared ? shared_us : alone_us));
      sharing.end();
    }
    return shared;
  };
  cycle(300, 100);
  EXPECT_TRUE(cycle(300, 100));
  EXPECT_EQ(shared_steps, ParallelTuner::kCycle - ParallelTuner::kHalf);
  EXPECT_FALSE(cycle(100, 300));
  cycle(100, 300);
  EXPECT_EQ(shared_steps, ParallelTuner::kHalf) << "but for the trial";
  EXPECT_TRUE(cycle(300, 100));
}

}  // namespace
}  // namespace tensorgrad::cpu
