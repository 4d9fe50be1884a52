// SPDX-License-Identifier: MIT
// Sampling: frequencies of the drawn tokens, and errors. golden/sampling_golden_test.cpp compares
// the processing of logits with transformers.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "support/message_of.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using lm::Sampler;
using lm::SamplingOptions;

constexpr float kOut = -std::numeric_limits<float>::infinity();
const std::vector<float> kLogits = {2.0F, -1.0F, 0.5F, 3.0F, 2.0F, -4.0F, 1.0F, 0.0F};

TEST(Sampling, temperature_0_takes_the_largest) {
  Sampler greedy({.temperature = 0, .top_k = 5, .top_p = 0.1});
  EXPECT_EQ(greedy.next(kLogits), 3);
  EXPECT_EQ(greedy.next(std::vector<float>{0, 7, 7, 1}), 1) << "the first of equal ones";
  Sampler penalized({.repetition_penalty = 4, .temperature = 0});
  std::vector<std::int32_t> drawn;
  for (int i = 0; i < 4; ++i) drawn.push_back(penalized.next(kLogits));
  // Tokens are penalized once they are drawn: 3 / 4 is less than 2 and 1.
  EXPECT_THAT(drawn, ::testing::ElementsAre(3, 0, 4, 6));
}

TEST(Sampling, frequencies_match_probabilities) {
  constexpr int kDraws = 20'000;
  const SamplingOptions options{.temperature = 1.3, .top_k = 6, .seed = 11};
  Sampler sampler(options);
  std::vector<int> counts(kLogits.size());
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(sampler.next(kLogits))];
  std::vector<float> logits = kLogits;
  lm::process_logits(logits, {}, options);
  const std::vector<double> chances = lm::probabilities(logits);
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (chances[i] == 0) {
      EXPECT_EQ(counts[i], 0) << i;
    } else {
      const double expected = kDraws * chances[i];
      chi_square += std::pow(counts[i] - expected, 2) / expected;
    }
  }
  EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom: exceeded by one in a thousand seeds
  EXPECT_EQ(std::count(chances.begin(), chances.end(), 0.0), 2);
}

TEST(Sampling, depends_only_on_seed_and_stream) {
  const auto text = [](std::uint64_t seed, std::uint64_t stream) {
    Sampler sampler({.seed = seed}, stream);
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 40; ++i) tokens.push_back(sampler.next(kLogits));
    return tokens;
  };
  EXPECT_EQ(text(7, 1), text(7, 1));
  EXPECT_NE(text(7, 1), text(8, 1));
  EXPECT_NE(text(7, 1), text(7, 2));
  // The same on every machine, because the standard defines the numbers of std::mt19937_64 and
  // std::seed_seq.
  const std::vector<std::int32_t> first = text(1, 0);
  EXPECT_THAT(std::vector<std::int32_t>(first.begin(), first.begin() + 8),
              ::testing::ElementsAre(3, 3, 0, 0, 0, 3, 4, 4));

  std::vector<Sampler> rows = {Sampler({.seed = 7}, 1), Sampler({.seed = 7}, 2)};
  std::vector<float> both = kLogits;
  both.insert(both.end(), kLogits.begin(), kLogits.end());
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_THAT(lm::sample_rows(rows, both), ::testing::ElementsAre(text(7, 1)[i], text(7, 2)[i]));
  }
}

// Quotients must not overflow. Only the largest logits keep a probability.
TEST(Sampling, a_tiny_temperature_is_nearly_greedy) {
  for (const double temperature : {1e-30, 1e-39, 1e-300, 5e-324}) {
    for (const float shift : {0.0F, 50.0F, -50.0F, 1e38F}) {
      std::vector<float> logits = kLogits;
      for (float& logit : logits) logit += shift;
      Sampler sampler({.temperature = temperature, .top_p = 0.9, .min_p = 0.1});
      const auto first = std::max_element(logits.begin(), logits.end()) - logits.begin();
      EXPECT_EQ(logits.at(static_cast<std::size_t>(sampler.next(logits))),
                logits.at(static_cast<std::size_t>(first)));
      lm::process_logits(logits, {}, {.temperature = temperature});
      for (const double chance : lm::probabilities(logits)) EXPECT_TRUE(std::isfinite(chance));
    }
  }
}

TEST(Sampling, excludes_tokens_of_probability_zero) {
  Sampler sampler({});
  const std::vector<float> logits = {kOut, 1, kOut, kOut};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sampler.next(logits), 1);
  // If the softmax overflowed, the result would be NaN.
  EXPECT_EQ(Sampler({}).next(std::vector<float>{-3e38F, 3e38F}), 1);
}

TEST(Sampling, options_out_of_range_are_rejected) {
  const auto with = [](const SamplingOptions& options) {
    return test::message_of([&] { const Sampler sampler(options); });
  };
  EXPECT_EQ(with({.repetition_penalty = 0}),
            "sampling: repetition_penalty: expected a number above 0, got 0");
  EXPECT_EQ(with({.temperature = -0.5}),
            "sampling: temperature: expected a number of 0 or more, got -0.5");
  EXPECT_EQ(with({.temperature = NAN}),
            "sampling: temperature: expected a number of 0 or more, got nan");
  EXPECT_EQ(with({.top_k = -3}), "sampling: top_k: expected a count of 0 or more, got -3");
  EXPECT_EQ(with({.top_p = 0}), "sampling: top_p: expected a number above 0 and at most 1, got 0");
  EXPECT_EQ(with({.top_p = 1.5}),
            "sampling: top_p: expected a number above 0 and at most 1, got 1.5");
  EXPECT_EQ(with({.min_p = 1.25}), "sampling: min_p: expected a number from 0 to 1, got 1.25");
}

TEST(Sampling, invalid_logits_are_rejected) {
  Sampler sampler({.repetition_penalty = 2});
  EXPECT_EQ(test::message_of([&] { (void)sampler.next(std::vector<float>{0, NAN}); }),
            "sampling: the logit of token 1 is NaN");
  EXPECT_EQ(test::message_of([&] { (void)sampler.next(std::vector<float>{-kOut, 0}); }),
            "sampling: the logit of token 0 is infinite");
  EXPECT_EQ(test::message_of([&] { (void)sampler.next(std::vector<float>{kOut, kOut}); }),
            "sampling: no token has a logit above minus infinity");
  sampler.add(std::vector<std::int32_t>{9});
  EXPECT_EQ(test::message_of([&] { (void)sampler.next(kLogits); }),
            "sampling: no logit for token 9 of the text; there are 8 logits");
  std::vector<Sampler> three(3, Sampler({}));
  EXPECT_EQ(test::message_of([&] { (void)lm::sample_rows(three, kLogits); }),
            "sample_rows: expected logits for 3 rows, got 8 numbers");
}

}  // namespace
}  // namespace tensorgrad::testing
