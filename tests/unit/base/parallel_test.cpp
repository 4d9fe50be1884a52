// SPDX-License-Identifier: MIT
// Work on several threads: each piece runs exactly once, and the first of several errors is thrown.
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace tensorgrad {
namespace {

TEST(InParallel, does_each_piece_once) {
  for (const std::size_t count : {0, 1, 2, 7, 1000}) {
    for (const std::size_t threads : {0, 1, 3, 64}) {
      std::vector<std::atomic<int>> done(count);
      in_parallel(count, threads, [&](std::size_t i) { ++done[i]; });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1) << count << " " << threads;
    }
  }
}

TEST(InParallel, rethrows_the_first_error_and_starts_no_more_pieces) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> begun = 0;
    try {
      in_parallel(100000, 4, [&](std::size_t i) {
        ++begun;
        if (i % 10 == 3) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "3");
    }
    EXPECT_LT(begun, 100000);
  }
}

TEST(ThreadGroup, does_each_piece_once_again_and_again) {
  ThreadGroup threads;
  for (int round = 0; round < 300; ++round) {
    for (const std::size_t count : {0, 1, 4, 2, 7}) {
      std::vector<std::atomic<int>> done(count);
      threads.run(count, [&](std::size_t i) { ++done[i]; });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1) << count;
    }
  }
}

TEST(ThreadGroup, works_at_the_same_time) {
  ThreadGroup threads;
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> there = 0;
    threads.run(3, [&](std::size_t) {  // no piece ends before all have started
      ++there;
      while (there < 3) std::this_thread::yield();
    });
    EXPECT_EQ(there, 3);
  }
}

TEST(ThreadGroup, rethrows_the_first_error_and_stays_usable) {
  ThreadGroup threads;
  for (int round = 0; round < 50; ++round) {
    try {
      threads.run(8, [](std::size_t i) {
        if (i % 3 == 2) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "2");
    }
    std::atomic<int> done = 0;
    threads.run(5, [&](std::size_t) { ++done; });
    EXPECT_EQ(done, 5);
  }
}

#if defined(__linux__)
TEST(UsableCores, are_the_cores_that_the_process_may_use) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_cores(), 1);
}
#endif

}  // namespace
}  // namespace tensorgrad
