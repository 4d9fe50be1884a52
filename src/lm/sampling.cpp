// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "base/numbers.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

constexpr float kLeftOut = -std::numeric_limits<float>::infinity();
constexpr double kLargestLogit = 1e30;  // larger quotients might overflow float

void demand(bool holds, const char* name, const char* expected, double given, Loc loc) {
  if (holds) return;
  throw UserError(std::string("sampling: ") + name + ": expected " + expected + ", got " +
                      format_text("%g", given),
                  loc);
}

void check_logits(std::span<const float> logits, Loc loc) {
  bool any = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == std::numeric_limits<float>::infinity()) {
      throw UserError("sampling: the logit of token " + std::to_string(i) + " is " +
                          (std::isnan(logits[i]) ? "NaN" : "infinite"),
                      loc);
    }
    any = any || logits[i] != kLeftOut;
  }
  if (!any) throw UserError("sampling: no token has a logit above minus infinity", loc);
}

template <class Tokens>
void penalize(std::span<float> logits, const Tokens& seen, double penalty, Loc loc) {
  if (penalty == 1) return;
  for (const std::int32_t token : seen) {
    if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) {
      throw UserError("sampling: no logit for token " + std::to_string(token) +
                          " of the text; there are " + std::to_string(logits.size()) + " logits",
                      loc);
    }
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
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
  const std::vector<double> chances = probabilities(logits);
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

// Applies all options but the repetition penalty.
void narrow_down(std::span<float> logits, const SamplingOptions& options) {
  if (options.temperature == 0) return;
  if (options.temperature != 1) divide(logits, options.temperature);
  keep_top_k(logits, options.top_k);
  keep_top_p(logits, options.top_p);
  keep_min_p(logits, options.min_p);
}

std::mt19937_64 generator_of(std::uint64_t seed, std::uint64_t stream) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  std::seed_seq mixed{low(seed), low(seed >> 32U), low(stream), low(stream >> 32U)};
  return std::mt19937_64(mixed);
}

}  // namespace

void check_options(const SamplingOptions& o, Loc loc) {
  demand(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty), "repetition_penalty",
         "a number above 0", o.repetition_penalty, loc);
  demand(o.temperature >= 0 && std::isfinite(o.temperature), "temperature", "a number of 0 or more",
         o.temperature, loc);
  demand(o.top_k >= 0, "top_k", "a count of 0 or more", static_cast<double>(o.top_k), loc);
  demand(o.top_p > 0 && o.top_p <= 1, "top_p", "a number above 0 and at most 1", o.top_p, loc);
  demand(o.min_p >= 0 && o.min_p <= 1, "min_p", "a number from 0 to 1", o.min_p, loc);
}

void process_logits(std::span<float> logits, std::span<const std::int32_t> seen,
                    const SamplingOptions& options, Loc loc) {
  check_options(options, loc);
  check_logits(logits, loc);
  penalize(logits, std::unordered_set<std::int32_t>(seen.begin(), seen.end()),
           options.repetition_penalty, loc);
  narrow_down(logits, options);
}

std::vector<double> probabilities(std::span<const float> logits) {
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

Sampler::Sampler(const SamplingOptions& options, std::uint64_t stream, Loc loc)
    : options_(options), random_(generator_of(options.seed, stream)) {
  check_options(options, loc);
}

void Sampler::add(std::span<const std::int32_t> tokens) {
  if (options_.repetition_penalty != 1) seen_.insert(tokens.begin(), tokens.end());
}

std::int32_t Sampler::next(std::span<const float> logits, Loc loc) {
  check_logits(logits, loc);
  std::vector<float> changed(logits.begin(), logits.end());
  penalize(changed, seen_, options_.repetition_penalty, loc);
  narrow_down(changed, options_);
  std::size_t drawn = 0;
  if (options_.temperature == 0) {
    drawn = static_cast<std::size_t>(std::max_element(changed.begin(), changed.end()) -
                                     changed.begin());
  } else {
    const std::vector<double> chances = probabilities(changed);
    // 53 random bits, in [0, 1). If it exceeds the sum because of rounding, the last token of
    // nonzero probability is drawn.
    double left = static_cast<double>(random_() >> 11U) * 0x1p-53;
    for (std::size_t i = 0; i < chances.size(); ++i) {
      if (chances[i] == 0) continue;
      drawn = i;
      left -= chances[i];
      if (left < 0) break;
    }
  }
  const auto token = static_cast<std::int32_t>(drawn);
  add({&token, 1});
  return token;
}

std::vector<std::int32_t> sample_rows(std::span<Sampler> samplers, std::span<const float> logits,
                                      Loc loc) {
  if (samplers.empty() || logits.empty() || logits.size() % samplers.size() != 0) {
    throw ShapeError("sample_rows: expected logits for " + std::to_string(samplers.size()) +
                         " rows, got " + std::to_string(logits.size()) + " numbers",
                     loc);
  }
  const std::size_t width = logits.size() / samplers.size();
  std::vector<std::int32_t> tokens;
  for (std::size_t row = 0; row < samplers.size(); ++row)
    tokens.push_back(samplers[row].next(logits.subspan(row * width, width), loc));
  return tokens;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
