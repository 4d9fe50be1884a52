// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/embedder.h"

#include <algorithm>
#include <bit>
#include <string>

#include "tensorgrad/error.h"
#include "tensorgrad/lm/decoder.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

constexpr std::uint64_t kShortestPadded = 16;

auto pooled(nn::Pooling pooling, Loc loc) {
  return [pooling, loc](const nn::LanguageModel& net, const Inputs& in) {
    return net.embed(in["tokens"], in["lengths"], pooling, loc);
  };
}

FunctionOptions embed_options(const EmbedOptions& options, Loc loc) {
  if (options.batch < 1) {
    throw UserError("Embedder: batch: expected at least 1, got " + std::to_string(options.batch),
                    loc);
  }
  return {.inputs = {{"tokens", {options.batch, kDynamic}, i32}, {"lengths", {options.batch}, i32}},
          .device = options.device};
}

CompiledFunction loaded_embedder(const SavedModel& model, const EmbedOptions& options, Loc loc) {
  CompiledFunction forward =
      compile_function(nn::LanguageModel(model.config, loc), pooled(options.pooling, loc),
                       embed_options(options, loc), loc);
  forward.upload_params(model.weights, {}, loc);
  return forward;
}

}  // namespace

Embedder::Embedder(const SavedModel& model, const EmbedOptions& options, Loc loc)
    : Embedder(loaded_embedder(model, options, loc), model.config, options) {}

Embedder::Embedder(Trainer<nn::LanguageModel>& trainer, const EmbedOptions& options, Loc loc)
    : Embedder(trainer.attach(pooled(options.pooling, loc), embed_options(options, loc), loc),
               trainer.model().config, options) {}

Embedder::Embedder(CompiledFunction forward, const nn::LanguageModelConfig& config,
                   const EmbedOptions& options)
    : options_(options),
      context_(max_context(config)),
      width_(config.d_model),
      forward_(std::move(forward)) {}

HostTensor Embedder::embed(std::span<const std::vector<std::int32_t>> texts, Loc loc) {
  if (texts.empty()) throw UserError("embed: expected at least 1 text, got none", loc);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(texts[i].size());
    if (length > 0 && (context_ == 0 || length <= context_)) continue;
    throw UserError(
        "embed: text " + std::to_string(i) + ": expected " +
            (length == 0 ? "at least 1 token, got none"
                         : "at most " + std::to_string(context_) +
                               " tokens, the context of the model, got " + std::to_string(length)),
        loc);
  }
  const auto batch = static_cast<std::size_t>(options_.batch);
  std::vector<float> rows;
  rows.reserve(texts.size() * static_cast<std::size_t>(width_));
  std::vector<std::int32_t> tokens, lengths;
  for (std::size_t from = 0; from < texts.size(); from += batch) {
    const auto part = texts.subspan(from, std::min(batch, texts.size() - from));
    std::size_t longest = 0;
    for (const auto& text : part) longest = std::max(longest, text.size());
    std::size_t padded = std::max(kShortestPadded, std::bit_ceil(std::uint64_t{longest}));
    if (context_ > 0) padded = std::min(padded, static_cast<std::size_t>(context_));
    tokens.assign(batch * padded, 0);
    lengths.assign(batch, 1);
    for (std::size_t i = 0; i < part.size(); ++i) {
      std::copy(part[i].begin(), part[i].end(),
                tokens.begin() + static_cast<std::ptrdiff_t>(i * padded));
      lengths[i] = static_cast<std::int32_t>(part[i].size());
    }
    const std::vector<float> made =
        forward_({{"tokens", tokens}, {"lengths", lengths}}, loc).floats();
    rows.insert(rows.end(), made.begin(),
                made.begin() + static_cast<std::ptrdiff_t>(part.size()) * width_);
  }
  return HostTensor::from({static_cast<std::int64_t>(texts.size()), width_}, rows, loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
