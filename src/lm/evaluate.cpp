// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/evaluate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tensorgrad/data/token_data.h"
#include "tensorgrad/error.h"
#include "tensorgrad/lm/decoder.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

// Returns the loss of the chunk of each part, in nats: [batch].
Tensor chunk_nats(const nn::LanguageModel& net, const Inputs& in) {
  const Tensor nats = cross_entropy(net.resume(in["tokens"], in["keep"]), in["next"],
                                    {.ignore_index = kIgnoreIndex, .reduction = Reduction::kNone});
  return sum(nats, 1);
}

ScoreOptions checked(ScoreOptions options, const nn::LanguageModelConfig& config, Loc loc) {
  if (options.chunk < 1 || options.batch < 1 || options.context < 0 ||
      options.context % options.chunk != 0) {
    throw UserError(
        "TextScorer: chunk and batch must be at least 1 and context a multiple of chunk, got " +
            std::to_string(options.chunk) + ", " + std::to_string(options.batch) + " and " +
            std::to_string(options.context),
        loc);
  }
  const std::int64_t most = max_context(config);
  if (most == 0) return options;
  if (options.chunk > most || options.context > most) {
    throw UserError("TextScorer: chunk and context must be at most " + std::to_string(most) +
                        ", the longest context of the model, got " + std::to_string(options.chunk) +
                        " and " + std::to_string(options.context),
                    loc);
  }
  if (options.context == 0) options.context = most / options.chunk * options.chunk;
  return options;
}

FunctionOptions scorer_inputs(const ScoreOptions& options) {
  const Shape tokens = {options.batch, options.chunk};
  return {.inputs = {{"tokens", tokens, i32}, {"next", tokens, i32}, {"keep", {options.batch}}},
          .device = options.device};
}

CompiledFunction loaded_scorer(const SavedModel& model, const ScoreOptions& options, Loc loc) {
  CompiledFunction forward = compile_function(nn::LanguageModel(model.config, loc), chunk_nats,
                                              scorer_inputs(options), loc);
  forward.upload_params(model.weights, {}, loc);
  return forward;
}

}  // namespace

TextScorer::TextScorer(const SavedModel& model, const ScoreOptions& options, Loc loc)
    : options_(checked(options, model.config, loc)),
      forward_(loaded_scorer(model, options_, loc)) {}

TextScorer::TextScorer(Trainer<nn::LanguageModel>& trainer, const nn::LanguageModelConfig& config,
                       const ScoreOptions& options, Loc loc)
    : options_(checked(options, config, loc)),
      forward_(trainer.attach(chunk_nats, scorer_inputs(options_), loc)) {}

TextScore TextScorer::score(std::span<const std::int32_t> tokens, Loc loc) {
  const auto pairs = static_cast<std::int64_t>(tokens.size()) - 1;
  const std::int64_t batch = options_.batch, chunk = options_.chunk;
  if (pairs < batch) {
    throw UserError("TextScorer: expected at least " + std::to_string(batch + 1) + " tokens, got " +
                        std::to_string(tokens.size()),
                    loc);
  }
  const std::int64_t each = (pairs + batch - 1) / batch;  // per part; the last ones may be shorter
  std::vector<std::int32_t> now(static_cast<std::size_t>(batch * chunk)), next(now.size());
  TextScore score;
  for (std::int64_t at = 0; at < each; at += chunk) {
    for (std::int64_t part = 0; part < batch; ++part) {
      for (std::int64_t i = 0; i < chunk; ++i) {
        const std::int64_t pair = part * each + at + i;
        const bool there = at + i < each && pair < pairs;
        const auto slot = static_cast<std::size_t>(part * chunk + i);
        now[slot] = there ? tokens[static_cast<std::size_t>(pair)] : 0;
        next[slot] = there ? tokens[static_cast<std::size_t>(pair + 1)] : kIgnoreIndex;
        score.tokens += there ? 1 : 0;
      }
    }
    const bool anew = at == 0 || (options_.context > 0 && at % options_.context == 0);
    const std::vector<float> keep(static_cast<std::size_t>(batch), anew ? 0.0F : 1.0F);
    for (const float nats :
         forward_({{"tokens", now}, {"next", next}, {"keep", keep}}, loc).floats())
      score.nats += nats;
    if (options_.on_progress) options_.on_progress(score.tokens);
  }
  return score;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
