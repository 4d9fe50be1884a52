// SPDX-License-Identifier: MIT
// Sampling of a token from the logits of a language model, on the host. Excluded tokens have a
// logit of minus infinity.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Changes of the logits, applied in this order. See lm::SamplingOptions.
struct LogitRules {
  double temperature = 1;  // more than 0
  std::int64_t top_k = 0;
  double top_p = 1, min_p = 0;
};
void apply_rules(std::span<float> logits, const LogitRules& rules);

// Returns the softmax in double precision, or NaN if no logit is above minus infinity.
std::vector<double> softmax_of(std::span<const float> logits);

// Returns the first token whose cumulative probability exceeds `uniform`, which is in [0, 1).
std::size_t draw_token(std::span<const float> logits, double uniform);

// Returns why no token can be sampled: -1 - 2i if logit i is the first that is NaN or plus
// infinity and is NaN, -2 - 2i if it is plus infinity, the smallest integer if all are minus
// infinity. Otherwise returns 0.
std::int32_t logit_fault(std::span<const float> logits);

// Numbers of the last axis of the operand `controls` of sample_tokens().
enum SampleControl : std::uint8_t { kTemperature, kTopK, kTopP, kMinP, kTokens, kSampleControls };

// Limit of sample_tokens(): counts of tokens are exact in f32.
inline constexpr std::int64_t kMaxSampledTokens = std::int64_t{1} << 24;

// Computes a row of sample_tokens().
std::int32_t sample_token(std::span<const float> logits, float uniform,
                          std::span<const float> controls);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
