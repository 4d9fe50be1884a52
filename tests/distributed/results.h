// SPDX-License-Identifier: MIT
// Results of a training on each rank of a thread group.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "distributed/ranks.h"

namespace tensorgrad::testing {

// Runs a training on each of the ranks and returns the results, which must not fail.
template <class Train>
auto results_of(int ranks, const Train& train) {
  using Ranks = std::shared_ptr<Communicator>;
  using Result = decltype(train(Ranks()));
  std::vector<std::optional<Result>> results(static_cast<std::size_t>(ranks));
  EXPECT_THAT(on_ranks(ranks,
                       [&](const Ranks& member) {
                         results[static_cast<std::size_t>(member->rank())] = train(member);
                       }),
              ::testing::Each(::testing::IsEmpty()));
  std::vector<Result> all;
  for (auto& each : results) all.push_back(std::move(each).value_or(Result{}));
  return all;
}

}  // namespace tensorgrad::testing
