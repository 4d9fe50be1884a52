// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/decoder.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tensorgrad/error.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

constexpr std::int64_t kLargestPiece = 1024;
constexpr int kPieceSizes = 6;  // 1, 4, ... 1024
constexpr std::int64_t kControls = SampleInputs().controls.size();

// Stands for the token that was sampled last.
constexpr std::int32_t kLastSampled = std::numeric_limits<std::int32_t>::min();

// Returns the logits [B, V], and `history` [B, kMaxSampled] with the tokens that are sampled from
// them at its end, instead of those at its beginning.
std::map<std::string, Tensor> next_tokens(const nn::LanguageModel& net, const Inputs& in) {
  Tensor tokens = in["tokens"];
  const Tensor history = in["history"];
  if (tokens.shape()[1] == 1) {
    const Tensor last = narrow(history, 1, Decoder::kMaxSampled - 1, 1);
    tokens = where(ne(tokens, kLastSampled), tokens, last);
  }
  const Tensor logits = net.resume_last(tokens, in["keep"]);
  const Tensor next = unsqueeze(sample_tokens(logits, in["uniform"], in["controls"]), 1);
  const Tensor kept = narrow(history, 1, 1, Decoder::kMaxSampled - 1);
  return {{"logits", logits}, {"history", concat({kept, next}, 1)}};
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
  const std::int64_t batch = checked_options(options, loc).batch;
  std::vector<InputSpec> inputs = Decoder::inputs(batch);
  inputs.push_back({"uniform", {batch}});
  inputs.push_back({"controls", {batch, kControls}});
  inputs.push_back({"history", {batch, Decoder::kMaxSampled}, i32});
  return {.inputs = std::move(inputs), .device = options.device, .max_cached_sizes = kPieceSizes};
}

CompiledFunction loaded_forward(const SavedModel& model, const DecoderOptions& options, Loc loc) {
  CompiledFunction forward = compile_function(nn::LanguageModel(model.config, loc), next_tokens,
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
  vocabulary_ = model.config.vocab_size;
}

Decoder::Decoder(Trainer<nn::LanguageModel>& trainer, const DecoderOptions& options, Loc loc)
    : Decoder(trainer.attach(next_tokens, forward_options(options, loc), loc), options, loc) {
  context_ = max_context(trainer.model().config);
  n_positions_ = trainer.model().config.n_positions;
  vocabulary_ = trainer.model().config.vocab_size;
}

Decoder::Decoder(CompiledFunction forward, const DecoderOptions& options, Loc loc)
    : forward_(std::move(forward)), options_(checked_options(options, loc)) {}

FeedView Decoder::feed(std::span<const std::int32_t> tokens, std::vector<float> keep,
                       std::span<Sampler> samplers, std::int64_t limit) const {
  FeedView inputs;
  inputs.add("tokens", tokens);
  inputs.add("keep", std::move(keep));
  if (!samples_on_device()) return inputs;
  std::vector<float> uniform, controls;
  for (std::size_t row = 0; row < static_cast<std::size_t>(options_.batch); ++row) {
    // Rows without a sampler sample nothing.
    const SampleInputs of = row < samplers.size() ? samplers[row].inputs(limit) : SampleInputs();
    uniform.push_back(of.uniform);
    controls.insert(controls.end(), of.controls.begin(), of.controls.end());
  }
  inputs.add("uniform", std::move(uniform));
  inputs.add("controls", std::move(controls));
  const auto history = sampled_.find("history");
  if (history != sampled_.end()) {
    inputs.add("history", history->second);
  } else {
    inputs.add("history",
               std::vector<std::int32_t>(static_cast<std::size_t>(options_.batch * kMaxSampled)));
  }
  return inputs;
}

void Decoder::run(std::span<const std::int32_t> tokens, const std::vector<float>& keep, Loc loc) {
  if (std::find(tokens.begin(), tokens.end(), kLastSampled) != tokens.end()) {
    throw UserError("decoder: " + std::to_string(kLastSampled) + " is not a token", loc);
  }
  sampled_.clear();
  const FeedView inputs = feed(tokens, keep, {}, 0);
  logits_ = samples_on_device() ? forward_.run_on_device(inputs, {}, loc).at("logits").download(loc)
                                : forward_(inputs, loc);
  if (logits_.dtype != f32) logits_ = HostTensor::from(logits_.shape, logits_.floats(), loc);
}

void Decoder::run_and_sample(std::span<const std::int32_t> tokens, const std::vector<float>& keep,
                             std::span<Sampler> samplers, std::int64_t limit, Loc loc) {
  sampled_ = forward_.run_on_device(feed(tokens, keep, samplers, limit), {}, loc);
  sampled_.erase("logits");  // the next run reuses their memory
}

void Decoder::check_length(std::int64_t length, Loc loc) const {
  if (n_positions_ == 0 || length <= n_positions_) return;
  throw UserError("decoder: a text has " + std::to_string(length) +
                      " tokens; expected at most n_positions = " + std::to_string(n_positions_) +
                      ", the positions that the model has learned",
                  loc);
}

void Decoder::run_chunks(std::span<const std::vector<std::int32_t>> texts, const RunChunk& run,
                         Loc loc) {
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
    at += piece;
    run(tokens, keep, at == total);
  }
  shortest_ = total - last_begin;
}

std::span<const float> Decoder::prefill(std::span<const std::vector<std::int32_t>> texts, Loc loc) {
  run_chunks(
      texts, [&](const auto& tokens, const auto& keep, bool) { run(tokens, keep, loc); }, loc);
  return logits_.float_span();
}

void Decoder::check_samplers(std::span<Sampler> samplers, Loc loc) const {
  if (!samples_on_device()) {
    throw UserError("decoder: only decoders of a model or a trainer sample on the device", loc);
  }
  for (const Sampler& sampler : samplers) {
    if (sampler.options().repetition_penalty != 1) {
      throw UserError("decoder: a repetition penalty cannot be applied on the device; use step()",
                      loc);
    }
  }
}

std::vector<std::int32_t> Decoder::prefill_and_sample(
    std::span<const std::vector<std::int32_t>> texts, std::span<Sampler> samplers,
    std::int64_t tokens, Loc loc) {
  check_samplers(samplers, loc);
  if (samplers.size() != texts.size()) {
    throw UserError("decoder: expected a sampler for each of " + std::to_string(texts.size()) +
                        " texts, got " + std::to_string(samplers.size()),
                    loc);
  }
  run_chunks(
      texts,
      [&](const auto& chunk, const auto& keep, bool last) {
        sampled_.clear();  // else programs for other sizes would hold the memory
        run_and_sample(chunk, keep, last ? samplers : std::span<Sampler>(), tokens, loc);
      },
      loc);
  return last_sampled(1, loc);
}

std::vector<std::int32_t> Decoder::sample(std::int64_t count, std::span<Sampler> samplers,
                                          std::int64_t tokens, Loc loc) {
  check_samplers(samplers, loc);
  if (count < 1 || count > kMaxSampled) {
    throw UserError("decoder: expected to sample 1 to " + std::to_string(kMaxSampled) +
                        " tokens at once, got " + std::to_string(count),
                    loc);
  }
  if (sampled_.empty()) {
    throw UserError("decoder: sample() continues what prefill_and_sample() began; call that first",
                    loc);
  }
  check_length(shortest_ + count, loc);
  const auto rows = static_cast<std::size_t>(options_.batch);
  const std::vector<std::int32_t> last(rows, kLastSampled);
  const std::vector<float> keep(rows, 1.0F);
  for (std::int64_t i = 0; i < count; ++i) run_and_sample(last, keep, samplers, tokens, loc);
  shortest_ += count;
  return last_sampled(count, loc);
}

std::vector<std::int32_t> Decoder::last_sampled(std::int64_t count, Loc loc) const {
  const std::vector<std::int32_t> history = sampled_.at("history").download(loc).ints();
  std::vector<std::int32_t> sampled;
  for (std::int64_t i = kMaxSampled - count; i < kMaxSampled; ++i) {
    for (std::int64_t row = 0; row < options_.batch; ++row)
      sampled.push_back(history[static_cast<std::size_t>(row * kMaxSampled + i)]);
  }
  return sampled;
}

std::span<const float> Decoder::step(std::span<const std::int32_t> tokens, Loc loc) {
  check_length(shortest_ + 1, loc);
  const std::vector<float> keep(static_cast<std::size_t>(options_.batch), 1.0F);
  run(tokens, keep, loc);
  ++shortest_;
  return logits_.float_span();
}

Profile Decoder::profile(std::int64_t chunk, const ProfileOptions& options, Loc loc) {
  if (chunk < 1 || chunk > options_.max_chunk || piece_of(chunk) != chunk) {
    throw UserError("decoder: expected a chunk of 4^k tokens, at most max_chunk = " +
                        std::to_string(options_.max_chunk) + ", got " + std::to_string(chunk),
                    loc);
  }
  sampled_.clear();
  const auto rows = static_cast<std::size_t>(options_.batch);
  const std::vector<std::int32_t> tokens(rows * static_cast<std::size_t>(chunk));
  return forward_.profile(feed(tokens, std::vector<float>(rows, 1.0F), {}, 0), options, loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
