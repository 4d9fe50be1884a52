// SPDX-License-Identifier: MIT
// How the next token is drawn from the numbers (logits) that a language model gives for each.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <unordered_set>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::lm {

// What is done to the logits, in this order, which is that of Hugging Face's `transformers`; the
// defaults change nothing. What is left out gets minus infinity.
struct SamplingOptions {
  // Logits of tokens that are in the text already: divided by it where they are positive, else
  // times it (Keskar et al. 2019). More than 0; 1: as they are.
  double repetition_penalty = 1;
  double temperature = 1;  // logits are divided by it; 0: the largest is taken (greedy)
  std::int64_t top_k = 0;  // those less than the k-th largest are left out; 0: none
  // The smallest set of the likeliest tokens whose probabilities, after all of the above, add up to
  // at least this is kept (Holtzman et al. 2020); in (0, 1]; 1: all.
  double top_p = 1;
  // Tokens less likely than this times the likeliest are left out; in [0, 1]; 0: none.
  double min_p = 0;
  std::uint64_t seed = 0;
};

// Throws UserError for a number that is out of its range.
void check_options(const SamplingOptions& options, Loc loc = Loc::current());

// Does all of it to logits [V]; `seen` are the tokens of the text so far, in any order, as often as
// they are there. With temperature 0 only the penalty. Throws UserError where a logit is NaN, all
// are minus infinity, or `seen` has a token that is not in [0, V).
void process_logits(std::span<float> logits, std::span<const std::int32_t> seen,
                    const SamplingOptions& options, Loc loc = Loc::current());

// What a softmax gives for each, in double; 0 for minus infinity.
std::vector<double> probabilities(std::span<const float> logits);

// Draws the tokens of one text. What it draws depends on the options, on its number `stream` and on
// the logits, and on nothing else, so that a text is the same beside others as alone.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options, std::uint64_t stream = 0,
                   Loc loc = Loc::current());

  // Tokens that are in the text already, as those of the prompt are.
  void add(std::span<const std::int32_t> tokens);
  // The next token for logits [V], which is added to the text. With temperature 0 the largest, of
  // equal ones the first. Throws as process_logits().
  std::int32_t next(std::span<const float> logits, Loc loc = Loc::current());

 private:
  SamplingOptions options_;
  std::mt19937_64 random_;
  std::unordered_set<std::int32_t> seen_;
};

// One token for each row of logits [B, V], B samplers. Throws ShapeError where it is not divided by
// the samplers.
std::vector<std::int32_t> sample_rows(std::span<Sampler> samplers, std::span<const float> logits,
                                      Loc loc = Loc::current());

}  // namespace tensorgrad::lm
