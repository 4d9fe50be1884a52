// SPDX-License-Identifier: MIT
// Results of a training on each rank of a thread group, and its checkpoints.
#pragma once

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "distributed/ranks.h"
#include "support/temp_dir.h"

namespace tensorgrad::testing {

inline ThreadGroupOptions bucket_options(std::int64_t bytes) {
  return {.timeout_seconds = 60, .bucket_bytes = bytes};
}

// Runs a training on each of the ranks and returns the results, which must not fail.
template <class Train>
auto results_of(int ranks, const Train& train,
                const ThreadGroupOptions& options = {.timeout_seconds = 60}) {
  using Ranks = std::shared_ptr<Communicator>;
  using Result = decltype(train(Ranks()));
  std::vector<std::optional<Result>> results(static_cast<std::size_t>(ranks));
  EXPECT_THAT(on_ranks(
                  ranks,
                  [&](const Ranks& member) {
                    results[static_cast<std::size_t>(member->rank())] = train(member);
                  },
                  options),
              ::testing::Each(::testing::IsEmpty()));
  std::vector<Result> all;
  for (auto& each : results) all.push_back(std::move(each).value_or(Result{}));
  return all;
}

inline void expect_same_file(const std::string& path, const std::string& expected) {
  SCOPED_TRACE(path);
  const auto file = read_safetensors(path), other = read_safetensors(expected);
  EXPECT_EQ(file.metadata, other.metadata);
  ASSERT_EQ(file.tensors.size(), other.tensors.size());
  for (const auto& [name, tensor] : other.tensors) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(file.tensors.contains(name));
    EXPECT_EQ(file.tensors.at(name).shape, tensor.shape);
    EXPECT_EQ(file.tensors.at(name).data, tensor.data);
  }
}

// Saves a training of three ranks whose `options(ranks, shard)` divide something, and one whose
// options do not. Expects the same files, and the same bits if any number of ranks resumes them.
template <class Options>
void expect_checkpoints_of_whole(const Options& options_of, const ThreadGroupOptions& group) {
  using Ranks = std::shared_ptr<Communicator>;
  const test::TempDir folder;
  const auto train = [&](const Ranks& ranks, bool shard, const std::string& from,
                         const std::string& to) {
    CompileOptions options = options_of(ranks, shard);
    options.ema_decay = 0.9;
    auto trainer = classifier(options);
    if (!from.empty()) trainer.load(folder / from);
    RankResult result = result_of(trainer, 4);
    if (to.empty()) return result;
    const bool first = ranks == nullptr || ranks->rank() == 0;
    const auto path = [&](const std::string& name) {
      return folder / (first ? name : "of another rank");
    };
    trainer.save(path(to));
    trainer.save_weights(path(to + ".weights"));
    trainer.save_weights(path(to + ".averages"), WeightSource::kEma);
    const std::vector<std::byte> bytes = trainer.save_bytes();
    if (first) {
      EXPECT_EQ(std::filesystem::file_size(folder / to), bytes.size());
    }
    return result;
  };
  const auto on = [&](int ranks, bool shard, const std::string& from, const std::string& to) {
    return results_of(
        ranks, [&](const Ranks& member) { return train(member, shard, from, to); }, group)[0];
  };
  on(3, false, "", "whole");
  on(3, true, "", "sharded");
  for (const std::string kind : {"", ".weights", ".averages"})
    expect_same_file(folder / ("sharded" + kind), folder / ("whole" + kind));
  EXPECT_FALSE(std::filesystem::exists(folder / "of another rank"));
  for (const int ranks : {1, 2, 3, 4}) {
    SCOPED_TRACE(ranks);
    EXPECT_EQ(on(ranks, true, "sharded", ""), on(ranks, false, "whole", ""));
  }
  EXPECT_EQ(train(nullptr, false, "sharded", ""), train(nullptr, false, "whole", ""));
}

}  // namespace tensorgrad::testing
