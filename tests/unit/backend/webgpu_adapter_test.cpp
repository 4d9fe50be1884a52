// SPDX-License-Identifier: MIT
// Choosing adapters and waiting for them, without a device.
#include <gmock/gmock.h>

#include "backend/webgpu/adapter.h"

namespace tensorgrad::webgpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Adapter> adapters_that_are_usable(const std::vector<bool>& usable) {
  std::vector<Adapter> adapters(usable.size());
  for (std::size_t i = 0; i < usable.size(); ++i) adapters[i].info.usable = usable[i];
  return adapters;
}

// Records the adapters of each attempt and the pauses between attempts.
struct Search {
  std::vector<std::vector<bool>> attempts;
  std::size_t asked = 0;
  std::vector<std::int64_t> pauses = {};

  std::size_t found(int number) {
    return find_patiently(
               [&] { return adapters_that_are_usable(attempts.at(asked++)); },
               [&](auto& adapters) { return choose_adapter(adapters, number) != nullptr; },
               [&](std::chrono::milliseconds time) { pauses.push_back(time.count()); })
        .size();
  }
};

TEST(WebGpuAdapter, is_the_requested_or_the_first_usable_one) {
  auto adapters = adapters_that_are_usable({false, true, true});
  EXPECT_EQ(choose_adapter(adapters, -1), &adapters[1]);
  EXPECT_EQ(choose_adapter(adapters, 0), &adapters[0]);
  EXPECT_EQ(choose_adapter(adapters, 3), nullptr);
  auto none = adapters_that_are_usable({false});
  EXPECT_EQ(choose_adapter(none, -1), nullptr);
}

TEST(WebGpuAdapter, search_is_repeated_until_one_is_found) {
  Search at_once{.attempts = {{true}}};
  EXPECT_EQ(at_once.found(-1), 1U);
  EXPECT_THAT(at_once.pauses, IsEmpty());
  Search later{.attempts = {{}, {false}, {false, true}}};
  EXPECT_EQ(later.found(-1), 2U);
  EXPECT_THAT(later.pauses, ElementsAre(100, 400));
  Search second{.attempts = {{true}, {true, true}}};
  EXPECT_EQ(second.found(1), 2U);
  EXPECT_THAT(second.pauses, ElementsAre(100));
  Search never{.attempts = {{}, {}, {false}}};
  EXPECT_EQ(never.found(-1), 1U);
  EXPECT_EQ(never.asked, 3U);
  EXPECT_THAT(never.pauses, ElementsAre(100, 400));
}

}  // namespace
}  // namespace tensorgrad::webgpu
