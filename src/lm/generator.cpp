// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/generator.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

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
  Writing(std::size_t prompt, const std::vector<std::int32_t>& tokens, const Tokenizer& tokenizer,
          const GenerateOptions& options, std::int64_t room, Loc loc)
      : prompt_(prompt),
        options_(options),
        room_(room),
        sampler_(options.sampling, options.first_random_stream + prompt, loc),
        stream_(tokenizer, {.skip_special_tokens = true}),
        text_(options.stop) {
    sampler_.add(tokens);
    if (options.max_tokens == 0) end(FinishReason::kMaxTokens);
  }

  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] Completion& result() { return result_; }

  // Samples and returns the next token. If the text has ended, returns 0 and does nothing.
  std::int32_t take(std::span<const float> logits, std::span<const std::int32_t> stop_tokens,
                    Loc loc) {
    if (!open_) return 0;
    const std::int32_t token = sampler_.next(logits, loc);
    result_.tokens.push_back(token);
    if (std::find(stop_tokens.begin(), stop_tokens.end(), token) != stop_tokens.end()) {
      end(FinishReason::kStopToken);
      return token;
    }
    write(text_.take(stream_.step(token)), token);
    if (!open_) return token;  // ended by the callback
    const auto count = static_cast<std::int64_t>(result_.tokens.size());
    if (text_.found()) {
      open_ = false;  // not end(): text that is held back is dropped
      result_.finish_reason = FinishReason::kStopString;
    } else if (count == options_.max_tokens) {
      end(FinishReason::kMaxTokens);
    } else if (room_ > 0 && count == room_) {
      end(FinishReason::kContext);
    }
    return token;
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
  Sampler sampler_;
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

// Sets the logits of ids that have no token to minus infinity.
class TokenMask {
 public:
  TokenMask(const Tokenizer& tokenizer, std::size_t width) {
    for (std::size_t id = 0; id < width; ++id) {
      if (!tokenizer.id_to_token(static_cast<std::int32_t>(id))) unused_.push_back(id);
    }
  }
  // The result is valid until the next call.
  std::span<const float> operator()(std::span<const float> logits) {
    if (unused_.empty()) return logits;
    masked_.assign(logits.begin(), logits.end());
    for (const std::size_t id : unused_) masked_[id] = -std::numeric_limits<float>::infinity();
    return masked_;
  }

 private:
  std::vector<std::size_t> unused_;
  std::vector<float> masked_;
};

// Generates until all texts have ended.
void write_group(Decoder& decoder, Prompts prompts, std::vector<Writing>& texts,
                 const Tokenizer& tokenizer, std::span<const std::int32_t> stop_tokens,
                 GenerationTimes& times, Loc loc) {
  const auto any_open = [&] {
    return std::any_of(texts.begin(), texts.end(), [](const Writing& t) { return t.open(); });
  };
  if (!any_open()) return;
  const auto batch = static_cast<std::size_t>(decoder.batch());
  double began = seconds_now();
  std::span<const float> logits = decoder.prefill(prompts, loc);
  times.prompt_seconds += seconds_now() - began;
  began = seconds_now();
  const std::size_t width = logits.size() / batch;
  TokenMask mask(tokenizer, width);
  std::vector<std::int32_t> next(batch);
  while (true) {
    for (std::size_t i = 0; i < texts.size(); ++i)
      next[i] = texts[i].take(mask(logits.subspan(i * width, width)), stop_tokens, loc);
    if (!any_open()) break;
    logits = decoder.step(next, loc);
    ++times.steps;
  }
  times.seconds += seconds_now() - began;
}

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
    std::vector<Writing> texts;
    texts.reserve(group.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto length = static_cast<std::int64_t>(group[i].size());
      times_.prompt_tokens += length;
      // The last token is sampled but not processed, so it takes no room in the context.
      const std::int64_t room = decoder_.context() > 0 ? decoder_.context() - length + 1 : 0;
      texts.emplace_back(from + i, group[i], tokenizer_, options, room, loc);
    }
    write_group(decoder_, group, texts, tokenizer_, stop_tokens, times_, loc);
    for (Writing& text : texts) {
      times_.tokens += static_cast<std::int64_t>(text.result().tokens.size());
      results.push_back(std::move(text.result()));
    }
  }
  return results;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
