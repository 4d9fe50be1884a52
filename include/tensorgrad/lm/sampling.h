// SPDX-License-Identifier: MIT
// Sampling of tokens from the logits of a language model. V is the size of the vocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <unordered_set>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Changes of the logits before sampling, applied in this order, which is that of Hugging Face's
/// `transformers`. The defaults change nothing. Excluded tokens get a logit of minus infinity.
struct SamplingOptions {
  /// Penalty of tokens that are already in the text (Keskar et al. 2019), greater than 0. Positive
  /// logits are divided by it, others multiplied. 1: off.
  double repetition_penalty = 1;

  double temperature = 1;  ///< Divides the logits, at least 0. 0: greedy, takes the largest logit.
  std::int64_t top_k = 0;  ///< Excludes logits less than the k-th largest; 0: off.

  /// Nucleus sampling (Holtzman et al. 2020), in (0, 1]. Keeps the smallest set of the most likely
  /// tokens whose probabilities, after the changes above, add up to at least `top_p`. If two are
  /// equal, the one with the higher id is kept first. 1: off.
  double top_p = 1;

  /// Excludes tokens whose probability is less than `min_p` times the largest, in [0, 1]. 0: off.
  double min_p = 0;

  std::uint64_t seed = 0;  ///< Seed of a Sampler.
};

/// Throws UserError if an option is out of range.
void check_options(const SamplingOptions& options, Loc loc = Loc::current());

/// Applies the options to logits [V] in place. `seen` contains the tokens of the text so far, in
/// any order; repetitions have no effect. With temperature 0, only the repetition penalty is
/// applied.
///
/// Throws the errors of check_options(). Also throws UserError if a logit is NaN or plus infinity,
/// or if all are minus infinity. With a repetition penalty, also throws UserError if a token of
/// `seen` is not in [0, V).
void process_logits(std::span<float> logits, std::span<const std::int32_t> seen,
                    const SamplingOptions& options, Loc loc = Loc::current());

/// Returns the softmax of logits in double precision. Logits of minus infinity have probability 0.
/// If all are minus infinity, the result is NaN.
std::vector<double> probabilities(std::span<const float> logits);

/// Throws the error of Sampler::next() if a number of sample_tokens() means that the logits are
/// unusable.
void check_token(std::int32_t token, Loc loc = Loc::current());

/// Values of a row of the operands of sample_tokens().
struct SampleInputs {
  float uniform = 0;                     ///< Random number in [0, 1).
  std::array<float, 5> controls = {-1};  ///< `controls` of sample_tokens().
};

/// Samples the tokens of one text. The tokens depend only on the options, the number of the random
/// stream and the logits, so that texts in a batch do not affect each other.
class Sampler {
 public:
  /// Creates a sampler. Throws the errors of check_options().
  explicit Sampler(const SamplingOptions& options, std::uint64_t stream = 0,
                   Loc loc = Loc::current());

  /// Adds tokens to the text, such as those of the prompt, for the repetition penalty.
  void add(std::span<const std::int32_t> tokens);

  /// Returns the next token for logits [V], and adds it to the text. With temperature 0, it is the
  /// first of the largest logits. Throws the errors of process_logits().
  std::int32_t next(std::span<const float> logits, Loc loc = Loc::current());

  /// Returns the operands with which sample_tokens() samples what next() would sample from the same
  /// logits, up to rounding, except for the repetition penalty. Advances the random stream like
  /// next(). Ids from `tokens` on are not sampled; 0: all can be.
  SampleInputs inputs(std::int64_t tokens = 0);

  /// Returns the options.
  [[nodiscard]] const SamplingOptions& options() const { return options_; }

 private:
  double draw();

  SamplingOptions options_;
  std::mt19937_64 random_;
  std::unordered_set<std::int32_t> seen_;
};

/// Returns the next token of each of B samplers, for logits [B, V]. Throws ShapeError if B or the
/// number of logits is 0, or if that number is not a multiple of B. Also throws the errors of
/// Sampler::next().
std::vector<std::int32_t> sample_rows(std::span<Sampler> samplers, std::span<const float> logits,
                                      Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
