// SPDX-License-Identifier: MIT
// The calls of a group of threads: results, and what happens if a member fails.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>

#include "distributed/ranks.h"

namespace tensorgrad::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ThreadGroup, adds_in_the_order_of_the_ranks) {
  // In any other order, the large numbers do not cancel before the small one is added.
  const std::vector<std::vector<float>> numbers = {
      {1e8F, 1, 0, -0.0F, 5}, {-1e8F, 2, 0, -0.0F, 6}, {1, 3, 0, -0.0F, 7}};
  std::vector<std::vector<float>> sums(3);
  EXPECT_THAT(on_ranks(3,
                       [&](const std::shared_ptr<Communicator>& ranks) {
                         const auto rank = static_cast<std::size_t>(ranks->rank());
                         std::vector<float> values = numbers[rank];
                         ranks->all_reduce_sum(values);
                         sums[rank] = values;
                       }),
              Each(IsEmpty()));
  for (const std::vector<float>& each : sums) EXPECT_THAT(each, ElementsAre(1, 6, 0, -0.0F, 18));
}

TEST(ThreadGroup, adds_fewer_elements_than_ranks_and_none) {
  std::vector<float> results(4);
  EXPECT_THAT(on_ranks(4,
                       [&](const std::shared_ptr<Communicator>& ranks) {
                         float one = static_cast<float>(ranks->rank() + 1);
                         ranks->all_reduce_sum({&one, 1});
                         ranks->all_reduce_sum({});
                         results[static_cast<std::size_t>(ranks->rank())] = one;
                       }),
              Each(IsEmpty()));
  EXPECT_THAT(results, Each(10));
}

TEST(ThreadGroup, broadcasts_and_gathers) {
  std::vector<std::vector<std::byte>> sent(3), gathered(3);
  EXPECT_THAT(on_ranks(3,
                       [&](const std::shared_ptr<Communicator>& ranks) {
                         const auto rank = static_cast<std::size_t>(ranks->rank());
                         std::vector<std::byte> bytes(2, std::byte(rank + 1));
                         gathered[rank].resize(6);
                         ranks->all_gather(bytes, gathered[rank]);
                         ranks->broadcast(bytes);
                         sent[rank] = bytes;
                       }),
              Each(IsEmpty()));
  const auto numbers = [](std::initializer_list<int> values) {
    std::vector<std::byte> bytes;
    for (const int value : values) bytes.push_back(std::byte(value));
    return bytes;
  };
  EXPECT_THAT(sent, Each(numbers({1, 1})));
  EXPECT_THAT(gathered, Each(numbers({1, 1, 2, 2, 3, 3})));
}

TEST(ThreadGroup, holds_all_at_a_barrier) {
  std::atomic<int> arrived = 0;
  std::vector<int> seen(3);
  EXPECT_THAT(on_ranks(3,
                       [&](const std::shared_ptr<Communicator>& ranks) {
                         std::this_thread::sleep_for(std::chrono::milliseconds(20 * ranks->rank()));
                         ++arrived;
                         ranks->barrier();
                         seen[static_cast<std::size_t>(ranks->rank())] = arrived;
                       }),
              Each(IsEmpty()));
  EXPECT_THAT(seen, Each(3));
}

TEST(ThreadGroup, fails_everywhere_if_calls_differ) {
  const auto errors = on_ranks(3, [](const std::shared_ptr<Communicator>& ranks) {
    std::vector<float> values(ranks->rank() == 2 ? 3 : 4);
    ranks->all_reduce_sum(values);
  });
  EXPECT_THAT(errors,
              Each(HasSubstr("all_reduce_sum: rank 2 makes another call than rank 0: "
                             "all_reduce_sum of 12 bytes, not all_reduce_sum of 16 bytes")));
}

TEST(ThreadGroup, fails_if_a_member_ends) {
  const auto errors = on_ranks(3, [](const std::shared_ptr<Communicator>& ranks) {
    if (ranks->rank() == 1) throw UserError("no data");
    ranks->barrier();
  });
  EXPECT_THAT(errors, ElementsAre(HasSubstr("all_gather: rank 1 has ended"), "no data",
                                  HasSubstr("all_gather: rank 1 has ended")));
}

TEST(ThreadGroup, fails_if_a_member_does_not_answer_in_time) {
  std::atomic<int> failed = 0;
  const auto errors = on_ranks(3,
                               [&](const std::shared_ptr<Communicator>& ranks) {
                                 if (ranks->rank() == 2) {
                                   while (failed < 2)
                                     std::this_thread::sleep_for(std::chrono::milliseconds(5));
                                   ranks->barrier();  // too late
                                   return;
                                 }
                                 try {
                                   ranks->barrier();
                                 } catch (...) {
                                   ++failed;
                                   throw;
                                 }
                               },
                               {.timeout_seconds = 0.1});
  EXPECT_THAT(errors, Each(HasSubstr("all_gather: rank 2 did not answer within 0.1 seconds")));
}

TEST(ThreadGroup, refuses_options_out_of_range) {
  const auto error = [](int size, double timeout) -> std::string {
    try {
      make_thread_group(size, {.timeout_seconds = timeout});
    } catch (const UserError& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_THAT(error(0, 1), HasSubstr("expected at least 1 rank, got 0"));
  EXPECT_THAT(error(2, 0), HasSubstr("timeout_seconds: expected more than 0"));
  EXPECT_THAT(error(2, 1e9), HasSubstr("at most"));
  EXPECT_EQ(error(1, 1e8), "");
}

}  // namespace
}  // namespace tensorgrad::testing
