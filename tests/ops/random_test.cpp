// SPDX-License-Identifier: MIT
// Random numbers: the published vectors of Philox4x32-10, and the same bits on all backends.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>

#include "op_cases.h"

namespace tensorgrad::testing {
namespace {

GraphBuilder& with_seed(GraphBuilder& s, double seed, double step) {
  s.leaves["_seed"] = {seed};
  s.leaves["_step"] = {step};
  return s;
}

void check_bits(Where where) {
  GraphBuilder s;
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

TEST(Random, has_reproducible_bits_on_cpu) { check_bits(Where::kCpu); }
TEST(Random, has_reproducible_bits_on_webgpu) { check_bits(Where::kWebGpu); }

// Known answers of Random123: counter 0 with key 0, and the all-zeros and all-ones vectors.
TEST(Random, philox_matches_the_published_words) {
  GraphBuilder s;
  const Tensor index = s.input({4}, u32, {0, 1, 2, 3});
  const Tensor zero = s.input({}, u32, {0});
  s.output("words", philox(index, zero, zero, zero));
  const Values want = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(interpret_graph(s.graph(), s.leaves).at("words"), want);
  EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kCpu).at("words"), want);
}

void check_normal(Where where) {
  GraphBuilder s;
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

// ---- distributions -----------------------------------------------------------------------------

using Make = std::function<Tensor(const Shape&)>;
constexpr std::int64_t kMany = 1 << 16;

Values sample(const Make& make, double seed = 9, double step = 4) {
  GraphBuilder s;
  with_seed(s, seed, step);
  s.output("x", make({kMany}));
  return run_graph(s.graph(), s.leaves, Where::kCpu).at("x");
}

// Moments of a distribution: the mean, and the central moments of order 2, 4 and 8.
struct Moments {
  double mean, second, fourth, eighth;
};

// Expects the moments of the sample within five standard deviations of their true values.
void expect_moments(const std::string& name, const Make& make, const Moments& want) {
  const Values x = sample(make);
  const double n = static_cast<double>(x.size());
  double mean = 0, second = 0, fourth = 0;
  for (const double v : x) {
    const double d = v - want.mean;
    mean += v / n;
    second += d * d / n;
    fourth += d * d * d * d / n;
  }
  EXPECT_NEAR(mean, want.mean, 5 * std::sqrt(want.second / n)) << name;
  EXPECT_NEAR(second, want.second, 5 * std::sqrt((want.fourth - want.second * want.second) / n))
      << name;
  EXPECT_NEAR(fourth, want.fourth, 5 * std::sqrt((want.eighth - want.fourth * want.fourth) / n))
      << name;
}

TEST(Random, distributions_have_their_moments) {
  const Moments unit = {0.5, 1.0 / 12, 1.0 / 80, 1.0 / 2304}, gauss = {0, 1, 3, 105};
  expect_moments("rand", [](const Shape& n) { return rand(n); }, unit);
  expect_moments("rand_like", [](const Shape& n) { return rand_like(zeros(n)); }, unit);
  expect_moments("randn", [](const Shape& n) { return randn(n); }, gauss);
  expect_moments("randn_like", [](const Shape& n) { return randn_like(zeros(n)); }, gauss);
  expect_moments("uniform", [](const Shape& n) { return uniform(n, -2, 4); }, {1, 3, 16.2, 729});
  expect_moments("normal", [](const Shape& n) { return normal(n, 3, 2); }, {3, 4, 48, 105 * 256});
  expect_moments("exponential", [](const Shape& n) { return exponential(n, 0.5); },
                 {2, 4, 9 * 16, 14833.0 * 256});
  const auto bernoulli_moments = [](double p) {
    const auto central = [p](int k) { return p * std::pow(1 - p, k) + (1 - p) * std::pow(-p, k); };
    return Moments{p, central(2), central(4), central(8)};
  };
  expect_moments(
      "bernoulli", [](const Shape& n) { return bernoulli(n, 0.3); }, bernoulli_moments(0.3));
  expect_moments(
      "bernoulli of a tensor", [](const Shape& n) { return bernoulli(full(n, 0.9)); },
      bernoulli_moments(0.9));
  // Values -3 to 3: sums of k^2, k^4 and k^8, divided by 7.
  expect_moments("randint", [](const Shape& n) { return cast(randint(n, -3, 4), f32); },
                 {0, 28.0 / 7, 196.0 / 7, 13636.0 / 7});
}

TEST(Random, distributions_stay_within_their_bounds) {
  const auto ends = [](const Make& make) {
    const Values x = sample(make);
    const auto [least, most] = std::minmax_element(x.begin(), x.end());
    return std::pair(*least, *most);
  };
  const auto [lo, hi] = ends([](const Shape& n) { return uniform(n, 1, 1 + 0x1p-20); });
  EXPECT_EQ(lo, 1);
  EXPECT_LT(hi, 1 + 0x1p-20);
  EXPECT_GT(ends([](const Shape& n) { return exponential(n); }).first, 0);
  EXPECT_EQ(ends([](const Shape& n) { return randint(n, -2, 3); }), std::pair(-2.0, 2.0));
  EXPECT_EQ(ends([](const Shape& n) { return randint(n, 7, 8); }), std::pair(7.0, 7.0));
  EXPECT_EQ(ends([](const Shape& n) { return bernoulli(n, 0); }), std::pair(0.0, 0.0));
  EXPECT_EQ(ends([](const Shape& n) { return bernoulli(n, 1); }), std::pair(1.0, 1.0));
}

// The extreme words, for which u is closest to 0 and to 1.
TEST(Random, open_uniform_numbers_have_finite_double_logarithms) {
  for (const float whole : {0.0F, 8388607.0F}) {
    const float u = (whole + 0.5F) * 0x1p-23F;
    EXPECT_GT(u, 0);
    EXPECT_LT(u, 1);
    EXPECT_TRUE(std::isfinite(-std::log(-std::log(u))));
  }
}

// Steps of seed 0 whose first word would round to 2^32 or is close to 0 (found by search). If u
// were 1, its noise would be infinite, and the first of two choices would be taken against all
// odds.
void check_ends_of_words(Where where) {
  for (const auto& [step, least, most] :
       {std::tuple(8966016.0, 0xffffff80, 0xffffffff), std::tuple(22978087.0, 0U, 127U)}) {
    // Returns the first element of the first random op of a graph.
    const auto first = [at = step, where](const std::function<Tensor(GraphBuilder&)>& make) {
      GraphBuilder s;
      with_seed(s, 0, at);
      s.output("y", make(s));
      return run_graph(s.graph(), s.leaves, where).at("y").at(0);
    };
    const double word = first([](GraphBuilder&) { return random_bits({1}); });
    ASSERT_GE(word, least);
    ASSERT_LE(word, most);
    EXPECT_EQ(first([](GraphBuilder& s) { return categorical(s.input({2}, f32, {0, 100})); }), 1);
    const double time = first([](GraphBuilder&) { return exponential({1}); });
    EXPECT_GT(time, 0);
    EXPECT_LT(time, 17);
    EXPECT_LT(std::abs(first([](GraphBuilder&) { return randn({1}); })), 6);
  }
}
TEST(Random, the_largest_and_smallest_words_make_finite_noise_on_cpu) {
  check_ends_of_words(Where::kCpu);
}
TEST(Random, the_largest_and_smallest_words_make_finite_noise_on_webgpu) {
  check_ends_of_words(Where::kWebGpu);
}

// ---- independence ------------------------------------------------------------------------------

double correlation(const Values& a, const Values& b) {
  const double n = static_cast<double>(a.size());
  double sum_a = 0, sum_b = 0, ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum_a += a[i];
    sum_b += b[i];
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return (ab - sum_a * sum_b / n) / std::sqrt((aa - sum_a * sum_a / n) * (bb - sum_b * sum_b / n));
}

void expect_independent(const Values& a, const Values& b, const std::string& what) {
  EXPECT_NEAR(correlation(a, b), 0, 5 / std::sqrt(static_cast<double>(a.size()))) << what;
}

TEST(Random, numbers_of_other_steps_seeds_and_ops_are_independent) {
  const std::map<std::string, Make> ops = {
      {"rand", [](const Shape& n) { return rand(n); }},
      {"randn", [](const Shape& n) { return randn(n); }},
      {"the second rand", [](const Shape& n) { return (void)rand(n), rand(n); }}};
  for (const auto& [name, make] : ops) {
    const Values first = sample(make);
    for (const double other : {1.0, 2.0, 64.0, 1048576.0}) {
      expect_independent(first, sample(make, 9, 4 + other), name + ", another step");
      expect_independent(first, sample(make, 9 + other, 4), name + ", another seed");
    }
    expect_independent(first, sample(make, 4, 9), name + ", seed and step exchanged");
    for (const auto& [other, make_other] : ops) {
      if (other != name) expect_independent(first, sample(make_other), name + " and " + other);
    }
  }
}

// Steps that draw the same numbers in another order would pass the test above, so compare the
// numbers themselves. Two samples of 1024 from 2^24 equally likely numbers have 0.06 in common on
// average.
TEST(Random, steps_are_no_permutations_of_one_another) {
  const auto drawn = [](double seed, double step) {
    GraphBuilder s;
    with_seed(s, seed, step);
    s.output("rand", rand({1024}));
    s.output("kept", sum(dropout(ones({1024}), 0.5)));
    ValueMap values = run_graph(s.graph(), s.leaves, Where::kCpu);
    std::sort(values.at("rand").begin(), values.at("rand").end());
    return values;
  };
  const ValueMap first = drawn(9, 4);
  std::set<double> counts = {first.at("kept")[0]};
  for (int far = 1; far < 1024; far *= 2) {
    const double other = far;
    for (const ValueMap& second : {drawn(9, 4 + other), drawn(9 + other, 4)}) {
      Values common;
      std::set_intersection(first.at("rand").begin(), first.at("rand").end(),
                            second.at("rand").begin(), second.at("rand").end(),
                            std::back_inserter(common));
      EXPECT_LT(common.size(), 6U) << other;
      counts.insert(second.at("kept")[0]);
    }
  }
  EXPECT_GT(counts.size(), 10U) << "dropout keeps as many elements in each step";
}

TEST(Random, elements_are_independent_of_their_neighbours) {
  for (const Make& make : {Make([](const Shape& n) { return rand(n); }),
                           Make([](const Shape& n) { return randn(n); })}) {
    const Values x = sample(make);
    for (const std::ptrdiff_t lag : {1, 2, 3, 4, 5, 8, 64, 256, 1024, 4096})
      expect_independent({x.begin(), x.end() - lag}, {x.begin() + lag, x.end()},
                         "lag " + std::to_string(lag));
  }
}

// ---- choices -----------------------------------------------------------------------------------

// Expects the frequency of each number within five standard deviations of its share.
void expect_shares(const Values& x, const Values& shares, const std::string& what) {
  std::vector<double> times(shares.size(), 0);
  for (const double v : x) ++times.at(static_cast<std::size_t>(v));
  const double n = static_cast<double>(x.size());
  for (std::size_t k = 0; k < shares.size(); ++k) {
    const double p = shares[k];
    EXPECT_NEAR(times[k] / n, p, 5 * std::sqrt(p * (1 - p) / n)) << what << ", " << k;
  }
}

Tensor logits_of(const std::vector<float>& values, std::int64_t rows) {
  const auto count = static_cast<std::int64_t>(values.size());
  return broadcast_to(constant(values, {count}), {rows, count});
}

TEST(Random, choices_have_their_shares) {
  expect_shares(
      sample([](const Shape& n) {
        return categorical(logits_of({0, std::log(2.0F), std::log(3.0F), -INFINITY}, n[0]));
      }),
      {1.0 / 6, 2.0 / 6, 3.0 / 6, 0}, "categorical");
  expect_shares(sample([](const Shape& n) {
                  return categorical(transpose(logits_of({1e4F, 1e4F, -1e4F}, n[0])), 0);
                }),
                {0.5, 0.5, 0}, "of large logits, along axis 0");
  expect_shares(sample([](const Shape& n) {
                  return multinomial(constant(std::vector<float>{3, 0, 1}, {3}), n[0], true);
                }),
                {0.75, 0, 0.25}, "multinomial");
  expect_shares(
      sample([](const Shape& n) { return categorical(logits_of({-INFINITY, -INFINITY}, n[0])); }),
      {1, 0}, "without any that may be taken");
  expect_shares(sample([](const Shape& n) {
                  return cast(sum(gumbel_softmax(logits_of({0, std::log(3.0F)}, n[0]), 1, true) *
                                      constant(std::vector<float>{0, 1}, {2}),
                                  1),
                              i32);
                }),
                {0.25, 0.75}, "gumbel_softmax");
}

TEST(Random, gumbel_softmax_is_a_distribution_with_a_gradient) {
  GraphBuilder s;
  with_seed(s, 1, 2);
  const Tensor x = s.input({5, 4}), weights = s.input({5, 4});
  const Tensor hard = gumbel_softmax(x, 0.5, true), soft = gumbel_softmax(x, 0.5);
  s.output("hard", hard);
  s.output("sums", sum(soft, 1));
  s.output("gradient", grad(sum(hard * weights), {x})[0]);
  const ValueMap got = run_graph(s.graph(), s.leaves, Where::kCpu);
  for (const double v : got.at("sums")) EXPECT_NEAR(v, 1, 1e-6);
  for (const double v : got.at("hard")) EXPECT_NEAR(v * (1 - v), 0, 1e-6);
  EXPECT_TRUE(std::any_of(got.at("gradient").begin(), got.at("gradient").end(),
                          [](double v) { return std::abs(v) > 1e-3; }));
}

// The result is -1 if nothing can be drawn.
void check_nothing_to_draw(Where where) {
  GraphBuilder s;
  with_seed(s, 3, 1);
  const Tensor weights =
      s.input({5, 3}, f32, {0, 0, 0, 0, 2, 0, 1, -1, 1, 1, kNan, 1, 1e-30, 0, 0});
  s.output("again", multinomial(weights, 2, true));
  s.output("once", multinomial(weights, 3));
  const ValueMap want = {{"again", {-1, -1, 1, 1, -1, -1, -1, -1, 0, 0}},
                         {"once", {-1, -1, -1, 1, -1, -1, -1, -1, -1, -1, -1, -1, 0, -1, -1}}};
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, where), want, 0, to_string(where));
}
TEST(Random, multinomial_marks_draws_without_weight_on_cpu) { check_nothing_to_draw(Where::kCpu); }
TEST(Random, multinomial_marks_draws_without_weight_on_webgpu) {
  check_nothing_to_draw(Where::kWebGpu);
}

TEST(Random, gumbel_softmax_takes_any_tau) {
  GraphBuilder s;
  with_seed(s, 1, 2);
  const Tensor x = s.input({4, 3}, -300, 300);
  for (const double tau : {1e-7, 1e-37, 1e-300}) {
    const std::string name = std::to_string(std::log10(tau));
    s.output(name, gumbel_softmax(x, tau));
    s.output(name + " f16", cast(gumbel_softmax(cast(x, f16), tau, true), f32));
  }
  for (const auto& [name, values] : run_graph(s.graph(), s.leaves, Where::kCpu)) {
    for (std::size_t i = 0; i < values.size(); i += 3)
      EXPECT_EQ(values[i] + values[i + 1] + values[i + 2], 1) << name;
  }
}

// The first draw follows the weights, the second the weights of the remaining choices.
TEST(Random, draws_without_replacement_have_their_shares) {
  const double w[3] = {1, 2, 5};
  GraphBuilder s;
  const Tensor weights = broadcast_to(constant(std::vector<float>{1, 2, 5}, {3}), {20000, 3});
  s.output("drawn", multinomial(weights, 2));
  with_seed(s, 8, 1);
  const Values drawn = run_graph(s.graph(), s.leaves, Where::kCpu).at("drawn");
  Values pairs, shares(9);
  for (std::size_t i = 0; i < drawn.size(); i += 2) pairs.push_back(drawn[i] * 3 + drawn[i + 1]);
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b)
      shares[a * 3 + b] = a == b ? 0 : w[a] / 8 * w[b] / (8 - w[a]);
  }
  expect_shares(pairs, shares, "pairs without replacement");
}

TEST(Random, randperm_draws_each_permutation_equally_often) {
  GraphBuilder s;
  for (int i = 0; i < 600; ++i) s.output("p" + std::to_string(i), randperm(3));
  s.output("large", randperm(500));
  with_seed(s, 3, 1);
  ValueMap got = run_graph(s.graph(), s.leaves, Where::kCpu);
  Values numbers;
  for (int i = 0; i < 600; ++i) {
    const Values& p = got.at("p" + std::to_string(i));
    const int code = static_cast<int>(p[0] * 9 + p[1] * 3 + p[2]);
    const std::map<int, double> known = {{5, 0}, {7, 1}, {11, 2}, {15, 3}, {19, 4}, {21, 5}};
    numbers.push_back(known.at(code));
  }
  expect_shares(numbers, Values(6, 1.0 / 6), "orders of three");
  Values large = got.at("large");
  EXPECT_FALSE(std::is_sorted(large.begin(), large.end()));
  std::sort(large.begin(), large.end());
  for (std::size_t i = 0; i < large.size(); ++i) EXPECT_EQ(large[i], i);
}

void check_choices(Where where) {
  GraphBuilder s;
  with_seed(s, 77, 5);
  s.output("randint", randint({3, 70}, -1000000, 2000000000));
  s.output("bernoulli", bernoulli({211}, 0.3));
  s.output("uniform", uniform({211}, -1, 3));
  s.output("randperm", randperm(40));
  s.output("categorical", categorical(logits_of({0, 1, 2, 0.5F}, 200)));
  s.output("multinomial", multinomial(constant(std::vector<float>{1, 2, 3, 4}, {2, 2}), 50, true));
  s.output("drawn", multinomial(constant(std::vector<float>{1, 2, 3, 0.5F}, {2, 2}), 2));
  const ValueMap want = interpret_graph(s.graph(), s.leaves);
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, where), want, 2e-7, to_string(where));
}

TEST(Random, choices_are_the_same_on_cpu) { check_choices(Where::kCpu); }
TEST(Random, choices_are_the_same_on_webgpu) { check_choices(Where::kWebGpu); }

// ---- dropout -----------------------------------------------------------------------------------

TEST(Random, channels_are_dropped_whole) {
  GraphBuilder s;
  with_seed(s, 5, 1);
  s.output("1d", dropout1d(ones({200, 10, 3}), 0.25));
  s.output("2d", dropout2d(ones({200, 10, 1, 3}), 0.25));
  for (const auto& [name, x] : run_graph(s.graph(), s.leaves, Where::kCpu)) {
    double dropped = 0;
    for (std::size_t i = 0; i < x.size(); i += 3) {
      EXPECT_TRUE(x[i] == x[i + 1] && x[i] == x[i + 2]) << name;
      EXPECT_TRUE(x[i] == 0 || std::abs(x[i] - 4.0 / 3) < 1e-6) << name;
      dropped += x[i] == 0 ? 1 : 0;
    }
    EXPECT_NEAR(dropped / 2000, 0.25, 5 * std::sqrt(0.25 * 0.75 / 2000)) << name;
  }
}

TEST(Random, alpha_dropout_keeps_mean_and_variance) {
  const Values x = sample([](const Shape& n) { return alpha_dropout(randn(n), 0.3); });
  const double n = static_cast<double>(x.size());
  double mean = 0, second = 0;
  for (const double v : x) {
    mean += v / n;
    second += v * v / n;
  }
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(second, 1, 0.05);
}

}  // namespace
}  // namespace tensorgrad::testing
