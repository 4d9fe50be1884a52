// SPDX-License-Identifier: MIT
// Ranks that are processes of mpirun: the same bits as with threads, and errors within the timeout.
#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <initializer_list>

#include "distributed/mpirun.h"
#include "distributed/ranks.h"

namespace tensorgrad::testing {
namespace {

using ::testing::HasSubstr;
using Ranks = std::shared_ptr<Communicator>;

Finished mpirun(int ranks, const std::string& arguments) {
  return mpirun_retried("-n " + std::to_string(ranks) + " " TENSORGRAD_MPI_RANKS " " + arguments);
}

std::string line_of(int rank, int ranks, std::uint64_t hash) {
  std::array<char, 64> line{};
  std::snprintf(line.data(), line.size(), "rank %d of %d: %016llx\n", rank, ranks,
                static_cast<unsigned long long>(hash));
  return line.data();
}

// Runs a test as processes and as threads, and compares the results of every rank.
void expect_as_threads(const std::string& test, std::initializer_list<int> several,
                       const std::function<std::uint64_t(const Ranks&)>& work) {
  for (const int ranks : several) {
    SCOPED_TRACE(ranks);
    const Finished processes = mpirun(ranks, test);
    ASSERT_EQ(processes.status, 0) << processes.text;
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(ranks));
    on_ranks(ranks, [&](const Ranks& member) {
      hashes[static_cast<std::size_t>(member->rank())] = work(member);
    });
    for (int rank = 0; rank < ranks; ++rank) {
      const std::uint64_t hash = hashes[static_cast<std::size_t>(rank)];
      EXPECT_NE(hash, 0U);
      EXPECT_THAT(processes.text, HasSubstr(line_of(rank, ranks, hash)));
    }
  }
}

TEST(MpiRanks, trains_a_classifier_to_the_bits_of_threads) {
  expect_as_threads("classifier", {1, 2, 3},
                    [](const Ranks& member) { return train_classifier(member).hash(); });
}

TEST(MpiRanks, trains_a_language_model_to_the_bits_of_threads) {
  expect_as_threads("language_model", {2, 3},
                    [](const Ranks& member) { return train_language_model(member).hash(); });
}

TEST(MpiRanks, trains_with_sharded_states_to_the_bits_of_whole_ones) {
  expect_as_threads("sharded", {1, 2, 3},
                    [](const Ranks& member) { return train_language_model(member).hash(); });
}

TEST(MpiRanks, trains_with_sharded_parameters_to_the_bits_of_threads) {
  expect_as_threads("sharded_parameters", {1, 2, 3}, [](const Ranks& member) {
    return train_language_model(member, false, true).hash();
  });
}

TEST(MpiRanks, exchanges_the_bits_of_threads) {
  expect_as_threads("exchange", {1, 2, 3, 5}, exchanged_hash);
}

TEST(MpiRanks, end_if_one_ends_its_process) {
  const Finished result = mpirun(3, "exit 20");
  EXPECT_NE(result.status, 0);
  EXPECT_LT(result.seconds, 60);
}

TEST(MpiRanks, end_if_one_throws) {
  const Finished result = mpirun(3, "throw 60");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.text, HasSubstr("error: rank 1 is out of data"));
  EXPECT_THAT(result.text,
              HasSubstr("of 3: all_reduce_sum: rank 1 ended while this rank waited for it"));
  EXPECT_LT(result.seconds, 50);
}

TEST(MpiRanks, end_within_the_timeout_if_one_hangs) {
  const Finished result = mpirun(3, "hang 2");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.text, HasSubstr("rank 1"));
  EXPECT_THAT(result.text, HasSubstr("did not answer within 2 seconds"));
  EXPECT_LT(result.seconds, 60);
}

TEST(MpiRanks, refuse_other_options) {
  const Finished result = mpirun(2, "differ");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.text, HasSubstr("error: compile: "));
  EXPECT_THAT(result.text, HasSubstr("of rank 1 differs from that of rank 0"));
}

TEST(MpiRanks, end_if_calls_differ) {
  const Finished result = mpirun(2, "sizes");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.text, HasSubstr("all_reduce_sum: "));
}

}  // namespace
}  // namespace tensorgrad::testing
