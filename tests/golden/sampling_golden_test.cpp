// SPDX-License-Identifier: MIT
// Compares the processing of logits before sampling with transformers (make_sampling_fixtures.py).
#include <limits>

#include "golden/fixture.h"

namespace tensorgrad::testing {
namespace {

constexpr float kNoChance = -std::numeric_limits<float>::infinity();

TEST(SamplingGolden, matches_transformers) {
  const Fixture fixture("sampling.safetensors");
  std::size_t cases = 0, left_out = 0;
  for (; fixture.has(std::to_string(cases) + "/options"); ++cases) {
    const std::string prefix = std::to_string(cases) + "/";
    const std::vector<float> options = fixture.values<float>(prefix + "options");
    ASSERT_EQ(options.size(), 5U);
    const lm::SamplingOptions sampling = {.repetition_penalty = options[0],
                                          .temperature = options[1],
                                          .top_k = static_cast<std::int64_t>(options[2]),
                                          .top_p = options[3],
                                          .min_p = options[4]};
    std::vector<float> got = fixture.values<float>(prefix + "logits");
    lm::process_logits(got, fixture.values<std::int32_t>(prefix + "text"), sampling);
    const std::vector<float> want = fixture.values<float>(prefix + "scores");
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (want[i] == kNoChance) {
        EXPECT_EQ(got[i], kNoChance) << prefix << i;
        ++left_out;
      } else {
        EXPECT_NEAR(got[i], want[i], 1e-6 * std::max(1.0F, std::abs(want[i]))) << prefix << i;
      }
    }
  }
  EXPECT_EQ(cases, 32U);
  EXPECT_GT(left_out, cases);
}

}  // namespace
}  // namespace tensorgrad::testing
