// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/evaluate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tensorgrad/error.h"
#include "tensorgrad/lm/decoder.h"
#include "tensorgrad/data/token_data.h"

namespace tensorgrad::lm {
namespace {

// The nats of each part's piece [parts].
Tensor piece_nats(const nn::MambaLM& net, const Inputs& in) {
  const Tensor nats = cross_entropy(net.resume(in["tokens"], in["keep"]), in["next"],
                                    {.ignore_index = kIgnoredToken, .reduction = Reduction::kNone});
  return sum(nats, 1);
}

ScoreOptions checked(ScoreOptions options, const nn::MambaConfig& config, Loc loc) {
  if (options.piece < 1 || options.parts < 1 || options.context < 0 ||
      options.context % options.piece != 0) {
    throw UserError(
        "TextScorer: piece and parts of at least 1 and a context that is a multiple of piece "
        "expected, got " +
            std::to_string(options.piece) + ", " + std::to_string(options.parts) + " and " +
            std::to_string(options.context),
        loc);
  }
  const std::int64_t most = context_of(config);
  if (most == 0) return options;
  if (options.piece > most || options.context > most) {
    throw UserError("TextScorer: the model's attention keeps " + std::to_string(most) +
                        " tokens, a piece of " + std::to_string(options.piece) +
                        " and a context of " + std::to_string(options.context) + " are asked for",
                    loc);
  }
  if (options.context == 0) options.context = most / options.piece * options.piece;
  return options;
}

ForwardOptions scorer_inputs(const ScoreOptions& options) {
  const Shape tokens = {options.parts, options.piece};
  return {.inputs = {{"tokens", tokens, i32}, {"next", tokens, i32}, {"keep", {options.parts}}},
          .device = options.device};
}

Forward loaded_scorer(const SavedModel& model, const ScoreOptions& options, Loc loc) {
  Forward forward =
      compile_forward(nn::MambaLM(model.config, loc), piece_nats, scorer_inputs(options), loc);
  forward.upload_params(model.weights, {}, loc);
  return forward;
}

}  // namespace

TextScorer::TextScorer(const SavedModel& model, const ScoreOptions& options, Loc loc)
    : options_(checked(options, model.config, loc)),
      forward_(loaded_scorer(model, options_, loc)) {}

TextScorer::TextScorer(Trainer<nn::MambaLM>& trainer, const nn::MambaConfig& config,
                       const ScoreOptions& options, Loc loc)
    : options_(checked(options, config, loc)),
      forward_(trainer.attach(piece_nats, scorer_inputs(options_), loc)) {}

TextScore TextScorer::score(std::span<const std::int32_t> tokens, Loc loc) {
  const auto pairs = static_cast<std::int64_t>(tokens.size()) - 1;
  const std::int64_t parts = options_.parts, piece = options_.piece;
  if (pairs < parts) {
    throw UserError("TextScorer: at least " + std::to_string(parts + 1) + " tokens expected, got " +
                        std::to_string(tokens.size()),
                    loc);
  }
  const std::int64_t each = (pairs + parts - 1) / parts;  // of a part; the last may be shorter
  std::vector<std::int32_t> now(static_cast<std::size_t>(parts * piece)), next(now.size());
  TextScore score;
  for (std::int64_t at = 0; at < each; at += piece) {
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::int64_t i = 0; i < piece; ++i) {
        const std::int64_t pair = part * each + at + i;
        const bool there = at + i < each && pair < pairs;
        const auto slot = static_cast<std::size_t>(part * piece + i);
        now[slot] = there ? tokens[static_cast<std::size_t>(pair)] : 0;
        next[slot] = there ? tokens[static_cast<std::size_t>(pair + 1)] : kIgnoredToken;
        score.tokens += there ? 1 : 0;
      }
    }
    const bool anew = at == 0 || (options_.context > 0 && at % options_.context == 0);
    const std::vector<float> keep(static_cast<std::size_t>(parts), anew ? 0.0F : 1.0F);
    for (const float nats :
         forward_({{"tokens", now}, {"next", next}, {"keep", keep}}, loc).floats())
      score.nats += nats;
    if (options_.on_progress) options_.on_progress(score.tokens);
  }
  return score;
}

}  // namespace tensorgrad::lm
