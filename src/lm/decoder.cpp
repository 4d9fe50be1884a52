// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/decoder.h"

#include <algorithm>
#include <set>
#include <string>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

constexpr std::int64_t kLargestPiece = 1024;
constexpr int kPieceSizes = 6;  // 1, 4, ... 1024

Tensor next_logits(const nn::LanguageModel& net, const Inputs& in) {
  return net.resume_last(in["tokens"], in["keep"]);
}

DecoderOptions checked_options(const DecoderOptions& options, Loc loc) {
  if (options.batch >= 1 && options.max_chunk >= 1 && options.max_chunk <= kLargestPiece) {
    return options;
  }
  throw UserError("decoder: batch must be at least 1 and max_chunk from 1 to " +
                      std::to_string(kLargestPiece) + ", got " + std::to_string(options.batch) +
                      " and " + std::to_string(options.max_chunk),
                  loc);
}

FunctionOptions forward_options(const DecoderOptions& options, Loc loc) {
  return {.inputs = Decoder::inputs(checked_options(options, loc).batch),
          .device = options.device,
          .max_cached_sizes = kPieceSizes};
}

CompiledFunction loaded_forward(const SavedModel& model, const DecoderOptions& options, Loc loc) {
  CompiledFunction forward = compile_function(nn::LanguageModel(model.config, loc), next_logits,
                                              forward_options(options, loc), loc);
  forward.upload_params(model.weights, {}, loc);
  return forward;
}

// Returns the largest power of four that is at most `most`.
std::int64_t piece_of(std::int64_t most) {
  std::int64_t piece = 1;
  while (piece * 4 <= most) piece *= 4;
  return piece;
}

}  // namespace

std::int64_t max_context(const nn::LanguageModelConfig& config) {
  std::int64_t most = config.n_positions;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const bool shared = config.layers[i] == nn::MixerKind::kMamba2Shared;
    if (!shared && config.layers[i] != nn::MixerKind::kAttention) continue;
    const std::int64_t room =
        shared ? config.shared.attention.max_length
               : nn::layer_config(config, static_cast<std::int64_t>(i)).attention.max_length;
    most = most == 0 ? room : std::min(most, room);
  }
  return most;
}

std::vector<InputSpec> Decoder::inputs(std::int64_t batch) {
  return {{"tokens", {batch, kDynamic}, i32}, {"keep", {batch}}};
}

Decoder::Decoder(const SavedModel& model, const DecoderOptions& options, Loc loc)
    : Decoder(loaded_forward(model, options, loc), options, loc) {
  context_ = max_context(model.config);
  n_positions_ = model.config.n_positions;
}

Decoder::Decoder(Trainer<nn::LanguageModel>& trainer, const DecoderOptions& options, Loc loc)
    : Decoder(trainer.attach(next_logits, forward_options(options, loc), loc), options, loc) {
  context_ = max_context(trainer.model().config);
  n_positions_ = trainer.model().config.n_positions;
}

Decoder::Decoder(CompiledFunction forward, const DecoderOptions& options, Loc loc)
    : forward_(std::move(forward)), options_(checked_options(options, loc)) {}

std::span<const float> Decoder::run(std::span<const std::int32_t> tokens,
                                    const std::vector<float>& keep, Loc loc) {
  logits_ = forward_({{"tokens", tokens}, {"keep", keep}}, loc);
  if (logits_.dtype != f32) logits_ = HostTensor::from(logits_.shape, logits_.floats(), loc);
  return logits_.float_span();
}

void Decoder::check_length(std::int64_t length, Loc loc) const {
  if (n_positions_ == 0 || length <= n_positions_) return;
  throw UserError("decoder: a text has " + std::to_string(length) +
                      " tokens; expected at most n_positions = " + std::to_string(n_positions_) +
                      ", the positions that the model has learned",
                  loc);
}

std::span<const float> Decoder::prefill(std::span<const std::vector<std::int32_t>> texts, Loc loc) {
  const auto batch = static_cast<std::size_t>(options_.batch);
  if (texts.empty() || texts.size() > batch) {
    throw UserError("decoder: expected 1 to " + std::to_string(batch) + " texts, got " +
                        std::to_string(texts.size()),
                    loc);
  }
  std::set<std::int64_t> begins;  // starts of the texts, aligned at their ends
  std::int64_t total = 0;
  for (const auto& text : texts) {
    if (text.empty()) throw UserError("decoder: a text has no tokens; expected at least 1", loc);
    total = std::max(total, static_cast<std::int64_t>(text.size()));
  }
  check_length(total, loc);
  for (const auto& text : texts) begins.insert(total - static_cast<std::int64_t>(text.size()));
  const std::int64_t last_begin = *begins.rbegin();
  begins.insert(total);
  std::vector<std::int32_t> tokens;
  std::vector<float> keep(batch);
  std::int64_t at = 0;
  while (at < total) {
    const std::int64_t edge = *begins.upper_bound(at);
    const std::int64_t piece = piece_of(std::min(options_.max_chunk, edge - at));
    tokens.assign(batch * static_cast<std::size_t>(piece), 0);
    for (std::size_t row = 0; row < batch; ++row) {
      const std::int64_t length =
          row < texts.size() ? static_cast<std::int64_t>(texts[row].size()) : 0;
      const std::int64_t from = at - (total - length);  // position in the text
      keep[row] = from > 0 && length > 0 ? 1.0F : 0.0F;
      if (from < 0 || length == 0) continue;
      std::copy_n(texts[row].begin() + from, piece,
                  tokens.begin() + static_cast<std::ptrdiff_t>(row) * piece);
    }
    run(tokens, keep, loc);
    at += piece;
  }
  shortest_ = total - last_begin;
  return logits_.float_span();
}

std::span<const float> Decoder::step(std::span<const std::int32_t> tokens, Loc loc) {
  check_length(shortest_ + 1, loc);
  const std::vector<float> keep(static_cast<std::size_t>(options_.batch), 1.0F);
  const std::span<const float> logits = run(tokens, keep, loc);
  ++shortest_;
  return logits;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
