// SPDX-License-Identifier: MIT
#include "base/sample_token.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr float kLeftOut = -std::numeric_limits<float>::infinity();
constexpr double kLargestLogit = 1e30;  // larger quotients might overflow float

void divide(std::span<float> logits, double temperature) {
  const double most = *std::max_element(logits.begin(), logits.end());
  // A shift changes no probability. If the largest logit is 0, no quotient becomes +inf.
  const double shift = std::abs(most) / temperature > kLargestLogit ? most : 0;
  for (float& logit : logits) {
    if (logit == kLeftOut) continue;
    const double quotient = (logit - shift) / temperature;
    logit = static_cast<float>(std::max(quotient, -double{std::numeric_limits<float>::max()}));
  }
}

void keep_top_k(std::span<float> logits, std::int64_t k) {
  if (k == 0 || static_cast<std::size_t>(k) >= logits.size()) return;
  std::vector<float> sorted(logits.begin(), logits.end());
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
  const float least = sorted[static_cast<std::size_t>(k - 1)];
  for (float& logit : logits) {
    if (logit < least) logit = kLeftOut;
  }
}

void keep_top_p(std::span<float> logits, double share) {
  if (share >= 1) return;
  const std::vector<double> chances = softmax_of(logits);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (chances[i] > 0) order.push_back(i);
  }
  // Among equal probabilities, keeps later tokens first, as in transformers, which sorts in
  // ascending order.
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return chances[a] > chances[b] || (chances[a] == chances[b] && a > b);
  });
  double sum = 0;
  for (const std::size_t i : order) {
    if (sum >= share) logits[i] = kLeftOut;
    sum += chances[i];
  }
}

void keep_min_p(std::span<float> logits, double share) {
  if (share == 0) return;
  const double most = *std::max_element(logits.begin(), logits.end());
  const double least = most + std::log(share);
  for (float& logit : logits) {
    if (logit < least) logit = kLeftOut;
  }
}

}  // namespace

std::vector<double> softmax_of(std::span<const float> logits) {
  std::vector<double> result(logits.size());
  if (logits.empty()) return result;
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    result[i] = logits[i] == kLeftOut ? 0 : std::exp(logits[i] - most);
    sum += result[i];
  }
  for (double& each : result) each /= sum;
  return result;
}

void apply_rules(std::span<float> logits, const LogitRules& rules) {
  if (rules.temperature != 1) divide(logits, rules.temperature);
  keep_top_k(logits, rules.top_k);
  keep_top_p(logits, rules.top_p);
  keep_min_p(logits, rules.min_p);
}

std::size_t draw_token(std::span<const float> logits, double uniform) {
  const std::vector<double> chances = softmax_of(logits);
  // If it exceeds the sum because of rounding, the last token of nonzero probability is drawn.
  double left = uniform;
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < chances.size(); ++i) {
    if (chances[i] == 0) continue;
    drawn = i;
    left -= chances[i];
    if (left < 0) break;
  }
  return drawn;
}

std::int32_t logit_fault(std::span<const float> logits) {
  bool any = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto at = static_cast<std::int32_t>(i);
    if (std::isnan(logits[i])) return -1 - 2 * at;
    if (logits[i] == std::numeric_limits<float>::infinity()) return -2 - 2 * at;
    any = any || logits[i] != kLeftOut;
  }
  return any ? 0 : std::numeric_limits<std::int32_t>::min();
}

std::int32_t sample_token(std::span<const float> logits, float uniform,
                          std::span<const float> controls) {
  const float temperature = controls[kTemperature];
  if (!(temperature >= 0)) return 0;
  const auto tokens = static_cast<std::size_t>(std::max(controls[kTokens], 0.0F));
  if (tokens > 0 && tokens < logits.size()) logits = logits.first(tokens);
  if (const std::int32_t fault = logit_fault(logits); fault != 0) return fault;
  if (temperature == 0) {
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                     logits.begin());
  }
  std::vector<float> changed(logits.begin(), logits.end());
  apply_rules(changed, {.temperature = temperature,
                        .top_k = static_cast<std::int64_t>(std::max(controls[kTopK], 0.0F)),
                        .top_p = controls[kTopP],
                        .min_p = controls[kMinP]});
  return static_cast<std::int32_t>(draw_token(changed, uniform));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
