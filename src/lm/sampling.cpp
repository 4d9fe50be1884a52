// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/numbers.h"
#include "base/sample_token.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

// Bounds of the temperature on a GPU, whose quotients have to be finite.
constexpr double kMinTemperature = 1e-30, kMaxTemperature = 1e30;

void demand(bool holds, const char* name, const char* expected, double given, Loc loc) {
  if (holds) return;
  throw UserError(std::string("sampling: ") + name + ": expected " + expected + ", got " +
                      format_text("%g", given),
                  loc);
}

void check_logits(std::span<const float> logits, Loc loc) { check_token(logit_fault(logits), loc); }

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

// Applies all options but the repetition penalty.
void narrow_down(std::span<float> logits, const SamplingOptions& options) {
  if (options.temperature == 0) return;
  apply_rules(logits, {options.temperature, options.top_k, options.top_p, options.min_p});
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

std::vector<double> probabilities(std::span<const float> logits) { return softmax_of(logits); }

void check_token(std::int32_t token, Loc loc) {
  if (token >= 0) return;
  if (token == std::numeric_limits<std::int32_t>::min()) {
    throw UserError("sampling: no token has a logit above minus infinity", loc);
  }
  const std::int32_t code = -1 - token;
  throw UserError("sampling: the logit of token " + std::to_string(code / 2) + " is " +
                      (code % 2 == 0 ? "NaN" : "infinite"),
                  loc);
}

Sampler::Sampler(const SamplingOptions& options, std::uint64_t stream, Loc loc)
    : options_(options), random_(generator_of(options.seed, stream)) {
  check_options(options, loc);
}

// Returns 53 random bits, in [0, 1).
double Sampler::draw() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }

SampleInputs Sampler::inputs(std::int64_t tokens) {
  static_assert(SampleInputs().controls.size() == kSampleControls);
  const auto number = [](auto value) { return static_cast<float>(value); };
  if (options_.temperature == 0) return {0, {0, 0, 1, 0, number(tokens)}};
  const double temperature = std::clamp(options_.temperature, kMinTemperature, kMaxTemperature);
  return {number(draw()),
          {number(temperature), number(options_.top_k), number(options_.top_p),
           number(options_.min_p), number(tokens)}};
}

void Sampler::add(std::span<const std::int32_t> tokens) {
  if (options_.repetition_penalty != 1) seen_.insert(tokens.begin(), tokens.end());
}

std::int32_t Sampler::next(std::span<const float> logits, Loc loc) {
  check_logits(logits, loc);
  std::vector<float> changed(logits.begin(), logits.end());
  penalize(changed, seen_, options_.repetition_penalty, loc);
  narrow_down(changed, options_);
  const std::size_t drawn =
      options_.temperature == 0
          ? static_cast<std::size_t>(std::max_element(changed.begin(), changed.end()) -
                                     changed.begin())
          : draw_token(changed, draw());
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
