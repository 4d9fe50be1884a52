// SPDX-License-Identifier: MIT
// Each element of a parameter is drawn from its own random words, on any number of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "compile/runtime/host_random.h"
#include "trace/initial.h"

namespace tensorgrad {
namespace {

constexpr std::uint32_t kStream = 5, kSeed = 11;

std::vector<float> drawn(const Init& init, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  fill_initial(init, {count}, kStream, kSeed, values);
  return values;
}
std::uint32_t word(std::size_t i) {
  return random_word(static_cast<std::uint32_t>(i), kStream, kSeed, 0);
}

// 200,003 elements are several tasks of several blocks, and not a multiple of either.
TEST(InitialValues, are_each_drawn_from_words_of_its_own) {
  const std::vector<float> uniform = drawn(init::uniform(-1, 3), 200003),
                           normal = drawn(init::normal(2, 0.5), 200003);
  for (std::size_t i = 0; i < uniform.size(); i += i < 3000 ? 1 : 97) {
    EXPECT_EQ(uniform[i], static_cast<float>(-1 + 4 * uniform_of(word(i)))) << i;
    EXPECT_EQ(normal[i], static_cast<float>(2 + 0.5 * normal_of(word(2 * i), word(2 * i + 1))))
        << i;
  }
  EXPECT_EQ(uniform.back(), static_cast<float>(-1 + 4 * uniform_of(word(200002))));
}

// The cumulative distribution at each element is the number that was drawn.
TEST(InitialValues, of_trunc_normal_match_its_quantiles) {
  const auto below = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  for (const auto& [lo, hi] : {std::pair{-50.0, 50.0}, {-2.0, 2.0}, {-1.0, 5.0}, {-9.0, -7.0}}) {
    const std::vector<float> x = drawn(init::trunc_normal(0, 1, lo, hi), 5000);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double u = uniform_of(word(i)) + 0x1p-25;
      const double share = below(lo) + u * (below(hi) - below(lo));
      // An f32 near 9 has an error of 5e-7, which changes the share by a relative 9 times as much.
      EXPECT_NEAR(below(x[i]), share, 5e-6 * share) << lo << " " << hi << " " << i;
    }
  }
}

}  // namespace
}  // namespace tensorgrad
