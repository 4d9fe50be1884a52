// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/generator.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

#include "lm/stop_text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// State of one text during generation.
class Writing {
 public:
  Writing(std::size_t prompt, const Tokenizer& tokenizer, const GenerateOptions& options,
          std::int64_t room)
      : prompt_(prompt),
        options_(options),
        room_(room),
        stream_(tokenizer, {.skip_special_tokens = true}),
        text_(options.stop) {
    if (options.max_tokens == 0) end(FinishReason::kMaxTokens);
  }

  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] Completion& result() { return result_; }

  // Returns the number of tokens that the text can still take.
  [[nodiscard]] std::int64_t left() const {
    if (!open_) return 0;
    const auto count = static_cast<std::int64_t>(result_.tokens.size());
    const std::int64_t left = options_.max_tokens - count;
    return room_ > 0 ? std::min(left, room_ - count) : left;
  }

  // Appends a token, unless the text has ended.
  void take(std::int32_t token, std::span<const std::int32_t> stop_tokens) {
    if (!open_) return;
    result_.tokens.push_back(token);
    if (std::find(stop_tokens.begin(), stop_tokens.end(), token) != stop_tokens.end()) {
      end(FinishReason::kStopToken);
      return;
    }
    write(text_.take(stream_.step(token)), token);
    if (!open_) return;  // ended by the callback
    const auto count = static_cast<std::int64_t>(result_.tokens.size());
    if (text_.found()) {
      open_ = false;  // not end(): text that is held back is dropped
      result_.finish_reason = FinishReason::kStopString;
    } else if (count == options_.max_tokens) {
      end(FinishReason::kMaxTokens);
    } else if (room_ > 0 && count == room_) {
      end(FinishReason::kContext);
    }
  }

 private:
  void write(const std::string& text, std::int32_t token) {
    result_.text += text;
    if (text.empty() || !options_.on_text || !open_) return;
    if (options_.on_text({prompt_, token, text})) return;
    open_ = false;
    result_.finish_reason = FinishReason::kCallback;
  }
  // Outputs the text that is held back, and ends the text.
  void end(FinishReason reason) {
    if (!open_) return;
    const std::int32_t token = result_.tokens.empty() ? 0 : result_.tokens.back();
    std::string rest = text_.take(stream_.finish());
    rest += text_.finish();
    write(rest, token);
    if (!open_) return;
    open_ = false;
    result_.finish_reason = reason;
  }

  std::size_t prompt_;
  const GenerateOptions& options_;
  std::int64_t room_;  // limit on new tokens by the context; 0: none
  DecodeStream stream_;
  StopText text_;
  Completion result_;
  bool open_ = true;
};

void check_generate_options(const GenerateOptions& options, Loc loc) {
  check_options(options.sampling, loc);
  if (options.max_tokens < 0) {
    throw UserError(
        "generate: max_tokens must be at least 0, got " + std::to_string(options.max_tokens), loc);
  }
  if (options.tokens_per_read < 1 || options.tokens_per_read > Decoder::kMaxSampled) {
    throw UserError("generate: tokens_per_read must be from 1 to " +
                        std::to_string(Decoder::kMaxSampled) + ", got " +
                        std::to_string(options.tokens_per_read),
                    loc);
  }
  if (std::any_of(options.stop.begin(), options.stop.end(), [](auto& s) { return s.empty(); })) {
    throw UserError("generate: a stop string is empty, which would end every text", loc);
  }
}

Tokenizer tokenizer_of_model(const SavedModel& model, Loc loc) {
  if (model.tokenizer) return *model.tokenizer;
  throw UserError("Generator: the model has no tokenizer", loc);
}

using Prompts = std::span<const std::vector<std::int32_t>>;

// Checks the prompts and replaces empty ones by the bos or eos token.
std::vector<std::vector<std::int32_t>> whole_prompts(Prompts given, const Tokenizer& tokenizer,
                                                     std::int64_t context, Loc loc) {
  std::vector<std::vector<std::int32_t>> prompts(given.begin(), given.end());
  const auto first = tokenizer.bos_id() ? tokenizer.bos_id() : tokenizer.eos_id();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty() && !first) {
      throw UserError("generate: prompt " + std::to_string(i) +
                          " is empty, and the tokenizer has no bos or eos token to start from",
                      loc);
    }
    if (prompts[i].empty()) prompts[i] = {*first};
    const auto length = static_cast<std::int64_t>(prompts[i].size());
    if (context > 0 && length > context) {
      throw UserError("generate: prompt " + std::to_string(i) + " has " + std::to_string(length) +
                          " tokens, but the model's attention keeps " + std::to_string(context),
                      loc);
    }
  }
  return prompts;
}

// Ids that have no token.
class UnusedIds {
 public:
  UnusedIds(const Tokenizer& tokenizer, std::size_t width) : width_(width) {
    for (std::size_t id = 0; id < width; ++id) {
      if (!tokenizer.id_to_token(static_cast<std::int32_t>(id))) ids_.push_back(id);
    }
  }

  // Returns the number of ids with a token if the others are the last ones.
  [[nodiscard]] std::optional<std::int64_t> used() const {
    const std::size_t used = width_ - ids_.size();
    if (ids_.empty() || ids_.front() == used) return static_cast<std::int64_t>(used);
    return std::nullopt;
  }

  // Sets their logits to minus infinity. The result is valid until the next call.
  std::span<const float> mask(std::span<const float> logits) {
    if (ids_.empty()) return logits;
    masked_.assign(logits.begin(), logits.end());
    for (const std::size_t id : ids_) masked_[id] = -std::numeric_limits<float>::infinity();
    return masked_;
  }

 private:
  std::size_t width_;
  std::vector<std::size_t> ids_;
  std::vector<float> masked_;
};

// Time of the tokens that are sampled before the host reads them.
constexpr double kMaxReadSeconds = 0.05;

// The texts of a batch.
class Group {
 public:
  Group(Decoder& decoder, Prompts prompts, std::size_t first, const Tokenizer& tokenizer,
        const GenerateOptions& options, std::span<const std::int32_t> stop_tokens, Loc loc)
      : decoder_(decoder),
        prompts_(prompts),
        options_(options),
        stop_tokens_(stop_tokens),
        tokenizer_(tokenizer),
        loc_(loc) {
    texts_.reserve(prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto length = static_cast<std::int64_t>(prompts[i].size());
      // The last token is sampled but not processed, so it takes no room in the context.
      const std::int64_t room = decoder.context() > 0 ? decoder.context() - length + 1 : 0;
      texts_.emplace_back(first + i, tokenizer, options, room);
      samplers_.emplace_back(options.sampling, options.first_random_stream + first + i, loc);
      samplers_.back().add(prompts[i]);
    }
  }

  // Generates until all texts have ended.
  void write(GenerationTimes& times) {
    if (left() == 0) return;
    if (const auto used = sampled_on_device()) {
      write_on_device(*used, times);
    } else {
      write_on_host(times);
    }
  }

  [[nodiscard]] std::vector<Writing>& texts() { return texts_; }

 private:
  // Returns the number of tokens that the longest text can still take.
  [[nodiscard]] std::int64_t left() const {
    std::int64_t most = 0;
    for (const Writing& text : texts_) most = std::max(most, text.left());
    return most;
  }

  // Returns the number of ids that can be sampled on the device, or nothing if the host samples.
  [[nodiscard]] std::optional<std::int64_t> sampled_on_device() const {
    const bool possible =
        options_.tokens_per_read > 1 && options_.sampling.repetition_penalty == 1 &&
        decoder_.samples_on_device() && decoder_.forward().same_device().kind != "cpu";
    if (!possible) return std::nullopt;
    return UnusedIds(tokenizer_, static_cast<std::size_t>(decoder_.vocabulary())).used();
  }

  // Adds one token to each text.
  void take(std::span<const std::int32_t> tokens) {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (texts_[i].open()) check_token(tokens[i], loc_);
      texts_[i].take(tokens[i], stop_tokens_);
    }
  }

  void write_on_device(std::int64_t ids, GenerationTimes& times) {
    const auto batch = static_cast<std::size_t>(decoder_.batch());
    double began = seconds_now();
    take(decoder_.prefill_and_sample(prompts_, samplers_, ids, loc_));
    times.prompt_seconds += seconds_now() - began;
    std::int64_t at_once = 1;
    while (left() > 0) {
      at_once = std::min({at_once, options_.tokens_per_read, left()});
      began = seconds_now();
      const auto tokens = decoder_.sample(at_once, samplers_, ids, loc_);
      for (std::size_t i = 0; i < tokens.size(); i += batch)
        take(std::span(tokens).subspan(i, batch));
      const double took = seconds_now() - began;
      times.seconds += took;
      times.steps += at_once;
      // A page's clock is coarse: it may not have advanced.
      if (2 * took <= kMaxReadSeconds) {
        at_once *= 2;
      } else {
        const double fit = kMaxReadSeconds / took * static_cast<double>(at_once);
        at_once = std::max(static_cast<std::int64_t>(fit), std::int64_t{1});
      }
    }
  }

  void write_on_host(GenerationTimes& times) {
    double began = seconds_now();
    std::span<const float> logits = decoder_.prefill(prompts_, loc_);
    times.prompt_seconds += seconds_now() - began;
    began = seconds_now();
    const auto batch = static_cast<std::size_t>(decoder_.batch());
    const std::size_t width = logits.size() / batch;
    UnusedIds unused(tokenizer_, width);
    std::vector<std::int32_t> next(batch);
    while (true) {
      for (std::size_t i = 0; i < texts_.size(); ++i) {
        next[i] = texts_[i].open()
                      ? samplers_[i].next(unused.mask(logits.subspan(i * width, width)), loc_)
                      : 0;
      }
      take(next);
      if (left() == 0) break;
      logits = decoder_.step(next, loc_);
      ++times.steps;
    }
    times.seconds += seconds_now() - began;
  }

  Decoder& decoder_;
  Prompts prompts_;
  const GenerateOptions& options_;
  std::span<const std::int32_t> stop_tokens_;
  const Tokenizer& tokenizer_;
  Loc loc_;
  std::vector<Writing> texts_;
  std::vector<Sampler> samplers_;
};

}  // namespace

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kMaxTokens: return "max tokens";
    case FinishReason::kStopString: return "stop string";
    case FinishReason::kStopToken: return "stop token";
    case FinishReason::kContext: return "context is full";
    case FinishReason::kCallback: return "callback";
  }
  return "";
}

Generator::Generator(const SavedModel& model, const DecoderOptions& options, Loc loc)
    : decoder_(model, options, loc),
      tokenizer_(tokenizer_of_model(model, loc)),
      eos_ids_(model.eos_ids) {
  if (eos_ids_.empty() && tokenizer_.eos_id()) eos_ids_ = {*tokenizer_.eos_id()};
}

Generator::Generator(Decoder decoder, const Tokenizer& tokenizer)
    : decoder_(std::move(decoder)), tokenizer_(tokenizer) {
  if (tokenizer_.eos_id()) eos_ids_ = {*tokenizer_.eos_id()};
}

Completion Generator::generate(const std::string& prompt, const GenerateOptions& options, Loc loc) {
  return std::move(generate(std::span(&prompt, 1), options, loc).front());
}

std::vector<Completion> Generator::generate(std::span<const std::string> prompts,
                                            const GenerateOptions& options, Loc loc) {
  std::vector<std::vector<std::int32_t>> tokens;
  for (const std::string& prompt : prompts) tokens.push_back(tokenizer_.encode(prompt));
  return generate_from(tokens, options, loc);
}

std::vector<Completion> Generator::generate_from(std::span<const std::vector<std::int32_t>> given,
                                                 const GenerateOptions& options, Loc loc) {
  check_generate_options(options, loc);
  const auto prompts = whole_prompts(given, tokenizer_, decoder_.context(), loc);
  std::vector<std::int32_t> stop_tokens = options.stop_tokens;
  if (!options.ignore_eos) stop_tokens.insert(stop_tokens.end(), eos_ids_.begin(), eos_ids_.end());
  times_ = {};
  std::vector<Completion> results;
  const auto batch = static_cast<std::size_t>(decoder_.batch());
  for (std::size_t from = 0; from < prompts.size(); from += batch) {
    const auto group = std::span(prompts).subspan(from, std::min(batch, prompts.size() - from));
    for (const auto& prompt : group)
      times_.prompt_tokens += static_cast<std::int64_t>(prompt.size());
    Group writing(decoder_, group, from, tokenizer_, options, stop_tokens, loc);
    writing.write(times_);
    for (Writing& text : writing.texts()) {
      times_.tokens += static_cast<std::int64_t>(text.result().tokens.size());
      results.push_back(std::move(text.result()));
    }
  }
  return results;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
