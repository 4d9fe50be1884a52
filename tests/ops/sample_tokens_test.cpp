// SPDX-License-Identifier: MIT
// sample_tokens(): the same tokens as on the host, for every combination of the rules, ties, large
// and unusable logits. tests/unit/lm/sampling_test.cpp and golden/sampling_golden_test.cpp test
// what the host samples.
#include <array>
#include <cmath>
#include <set>

#include "base/sample_token.h"
#include "kernel/sample_tokens.h"
#include "ops/op_cases.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

using Controls = std::array<float, kSampleControls>;

// Rows of logits with a uniform number and controls each.
struct Rows {
  std::int64_t tokens;
  Values logits, uniform, controls;

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(uniform.size()); }

  void add(const Values& row, double u, const Controls& rules) {
    logits.insert(logits.end(), row.begin(), row.end());
    uniform.push_back(u);
    controls.insert(controls.end(), rules.begin(), rules.end());
  }
};

Values sampled(const Rows& rows, Where where) {
  GraphBuilder s;
  const Tensor logits = s.input({rows.count(), rows.tokens}, f32, rows.logits);
  const Tensor uniform = s.input({rows.count()}, f32, rows.uniform);
  const Tensor controls = s.input({rows.count(), kSampleControls}, f32, rows.controls);
  s.output("tokens", sample_tokens(logits, uniform, controls));
  return run_graph(s.graph(), s.leaves, where).at("tokens");
}

std::vector<float> floats(const Values& values, std::size_t first, std::size_t count) {
  return {values.begin() + static_cast<std::ptrdiff_t>(first),
          values.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

// Expects the tokens of the host. A GPU rounds exponentials, so the cumulative probabilities differ
// by up to 1e-5.
void expect_tokens_of_host(const Rows& rows, Where where) {
  const Values got = sampled(rows, where);
  const auto width = static_cast<std::size_t>(rows.tokens);
  std::set<double> distinct;
  for (std::size_t row = 0; row < got.size(); ++row) {
    const std::vector<float> logits = floats(rows.logits, row * width, width);
    const std::vector<float> rules = floats(rows.controls, row * kSampleControls, kSampleControls);
    const double slack = where == Where::kCpu ? 0 : 1e-5;
    bool allowed = false;
    std::int32_t first = 0, last = 0;  // between these, if top_p is as given
    for (const double scale : {-0.1 * slack, 0.1 * slack, 0.0}) {
      std::vector<float> changed = rules;
      changed[kTopP] = static_cast<float>(changed[kTopP] * (1 + scale));
      const auto token = [&](double shift) {
        const double u = std::clamp(rows.uniform[row] + shift, 0.0, 1.0);
        return sample_token(logits, static_cast<float>(u), changed);
      };
      first = token(-slack);
      last = token(slack);
      allowed = allowed || (got[row] >= first && got[row] <= last);
    }
    EXPECT_TRUE(allowed) << "row " << row << ": " << got[row] << ", expected " << first << " to "
                         << last << "; u " << rows.uniform[row] << ", temperature "
                         << rules[kTemperature] << ", top_k " << rules[kTopK] << ", top_p "
                         << rules[kTopP] << ", min_p " << rules[kMinP];
    distinct.insert(got[row]);
  }
  if (rows.tokens > 100) {
    EXPECT_GT(distinct.size(), 1U);
  }
}

const Controls kRules[] = {
    {1, 0, 1, 0, 0},      {0.7F, 0, 1, 0, 0},      {0, 3, 0.5F, 0, 0},      {1, 5, 1, 0, 0},
    {1, 0, 0.9F, 0, 0},   {0.8F, 40, 0.95F, 0, 0}, {1.5F, 0, 1, 0.05F, 0},  {2, 20, 0.6F, 0.1F, 0},
    {1, 1, 1, 0, 0},      {1, 0, 1e-6F, 0, 0},     {1, 1e6F, 1, 1, 0},      {5, 0, 0.999F, 0, 90},
    {1e-30F, 0, 1, 0, 0}, {1e30F, 7, 1, 0, 0},     {1, 0, 0.9999999F, 0, 2}};

void check_rules(std::int64_t tokens, const Values& logits, Where where) {
  SCOPED_TRACE(std::to_string(tokens) + " tokens");
  Rows rows{tokens, {}, {}, {}};
  Draw draw(3);
  for (const Controls& rules : kRules) {
    for (const double u : {0.0, draw.real(0, 1), draw.real(0, 1), 1 - 0x1p-24, 1.0})
      rows.add(logits, u, rules);
  }
  expect_tokens_of_host(rows, where);
}

Values ties(std::int64_t tokens) {
  Values values;
  Draw draw(8);
  for (std::int64_t i = 0; i < tokens; ++i)
    values.push_back(
        std::array{0.0, -0.0, 1.5, 1.5, -kInf, 1.25}[static_cast<std::size_t>(draw.whole(0, 5))]);
  return values;
}

void check_all(Where where) {
  for (const std::int64_t tokens : {1, 2, 5, 256, 257, 1000}) {
    check_rules(tokens, Draw(1).values(f32, tokens, -6, 6), where);
    if (tokens > 2) check_rules(tokens, ties(tokens), where);
    check_rules(tokens, Values(static_cast<std::size_t>(tokens), -3e38), where);
  }
  // Differences that overflow, and small ones.
  check_rules(5, {3e38, -3e38, 3e38, 1e38, 0}, where);
  check_rules(5, {1e-6, 3e-6, -2e-6, 0, 1e-40}, where);
  // The tail has a third of the probability.
  Values tail(70'000, -10.5);
  tail[123] = 1.2;
  tail[60'000] = 0.6;
  check_rules(70'000, tail, where);
}
TEST(SampleTokens, matches_the_host_on_cpu) { check_all(Where::kCpu); }
TEST(SampleTokens, matches_the_host_on_webgpu) { check_all(Where::kWebGpu); }

void check_unusable(Where where) {
  Rows rows{4, {}, {}, {}};
  rows.add({0, 1, kNan, kInf}, 0.5, {1, 0, 1, 0, 0});
  rows.add({0, kInf, kNan, 1}, 0.5, {0, 0, 1, 0, 0});
  rows.add({-kInf, -kInf, -kInf, -kInf}, 0.5, {1, 2, 0.5F, 0, 0});
  rows.add({kNan, 1, 2, 3}, 0.5, {-1, 0, 1, 0, 0});
  rows.add({1, 2, kNan, kInf}, 0.5, {0, 0, 1, 0, 2});  // of the first two tokens
  EXPECT_EQ(sampled(rows, where), (Values{-5, -4, -2147483648.0, 0, 1}));
}
TEST(SampleTokens, reports_unusable_logits_on_cpu) { check_unusable(Where::kCpu); }
TEST(SampleTokens, reports_unusable_logits_on_webgpu) { check_unusable(Where::kWebGpu); }

// The frequencies of the tokens of 4,096 evenly spaced uniform numbers are the probabilities.
void check_frequencies(Where where) {
  constexpr int kDraws = 4096;
  Rows rows{3, {}, {}, {}};
  for (int i = 0; i < kDraws; ++i)
    rows.add({std::log(1.0), std::log(2.0), std::log(5.0)}, (i + 0.5) / kDraws, {1, 0, 1, 0, 0});
  std::array<int, 3> counts{};
  for (const double token : sampled(rows, where)) ++counts.at(static_cast<std::size_t>(token));
  EXPECT_EQ(counts[0], kDraws / 8);
  EXPECT_EQ(counts[1], kDraws / 4);
}
TEST(SampleTokens, tokens_have_their_probabilities_on_cpu) { check_frequencies(Where::kCpu); }
TEST(SampleTokens, tokens_have_their_probabilities_on_webgpu) { check_frequencies(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
