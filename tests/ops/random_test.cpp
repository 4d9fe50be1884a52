// SPDX-License-Identifier: MIT
// Random numbers: the published vectors of Philox4x32-10, and the same bits everywhere.
#include "op_cases.h"

namespace tensorgrad::testing {
namespace {

Sketch& with_seed(Sketch& s, double seed, double step) {
  s.leaves["_seed"] = {seed};
  s.leaves["_step"] = {step};
  return s;
}

void check_bits(Where where) {
  Sketch s;
  with_seed(s, 4000000000.0, 12);
  s.output("bits", random_bits({3, 70}));
  s.output("other", random_bits({211}));
  s.output("uniform", rand({50}));
  s.output("dropped", dropout(ones({100}), 0.5));
  const ValueMap want = interpret_graph(s.graph(), s.leaves);
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, where), want, 0, "at " + to_string(where));
  EXPECT_NE(Values(want.at("bits").begin(), want.at("bits").begin() + 200),
            Values(want.at("other").begin(), want.at("other").begin() + 200));
}

TEST(Random, is_the_same_bits_on_cpu) { check_bits(Where::kCpu); }
TEST(Random, is_the_same_bits_on_webgpu) { check_bits(Where::kWebGpu); }

// Random123's known answers: counter 0 with key 0, and the zeros and ones of the other test vector.
TEST(Random, philox_gives_the_published_words) {
  Sketch s;
  const Tensor index = s.input({4}, u32, {0, 1, 2, 3});
  const Tensor zero = s.input({}, u32, {0});
  s.output("words", philox(index, zero, zero, zero));
  const Values want = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(interpret_graph(s.graph(), s.leaves).at("words"), want);
  EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kCpu).at("words"), want);
}

void check_normal(Where where) {
  Sketch s;
  with_seed(s, 1, 2);
  s.output("n", randn({4000}));
  const Values want = interpret_graph(s.graph(), s.leaves).at("n");
  const Values got = run_graph(s.graph(), s.leaves, where).at("n");
  double mean = 0, square = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 2e-5 * (1 + std::abs(want[i]))) << i;
    mean += got[i] / 4000;
    square += got[i] * got[i] / 4000;
  }
  EXPECT_NEAR(mean, 0, 0.06);
  EXPECT_NEAR(square, 1, 0.1);
}

TEST(Random, normal_has_its_moments_on_cpu) { check_normal(Where::kCpu); }
TEST(Random, normal_has_its_moments_on_webgpu) { check_normal(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
