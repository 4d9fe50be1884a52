// SPDX-License-Identifier: MIT
// Text that a language model writes on.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/lm/decoder.h"
#include "tensorgrad/lm/sampling.h"
#include "tensorgrad/data/tokenizer.h"

namespace tensorgrad::lm {

// What has been written of a text since the last call.
struct GeneratedChunk {
  std::size_t prompt = 0;  // its place among the prompts
  std::int32_t token = 0;  // the last
  std::string_view text;   // what is certain with it: whole characters, no part of a stop string
};

struct GenerateOptions {
  SamplingOptions sampling = {};
  std::int64_t max_tokens = 256;  // of each text, without its prompt
  // Where one of these is written the text ends, before it.
  std::vector<std::string> stop = {};
  std::vector<std::int32_t> stop_tokens = {};  // likewise; the tokenizer's eos is one of them
  bool ignore_eos = false;                     // unless this is set
  // Prompt k draws its random numbers from stream `first_stream` + k (see Sampler).
  std::uint64_t first_stream = 0;
  // Called for each token with text that is certain, in the order of the prompts; false ends the
  // text. What it throws ends all.
  std::function<bool(const GeneratedChunk&)> on_text = nullptr;
};

enum class FinishReason : std::uint8_t { kMaxTokens, kStopString, kStopToken, kContext, kCallback };
// "max tokens", "stop string", "stop token", "context is full", "callback".
std::string_view to_string(FinishReason reason);

struct Completion {
  std::string text;                  // without the prompt
  std::vector<std::int32_t> tokens;  // all that were drawn, with a stop token or string
  FinishReason finish_reason = FinishReason::kMaxTokens;
};

// How long the last generate() took.
struct GenerationTimes {
  std::int64_t prompt_tokens = 0, tokens = 0;  // of all texts
  double prompt_seconds = 0, seconds = 0;      // up to the first tokens; from there on
  std::int64_t steps = 0;                      // of all texts of a batch together
};

class Generator {
 public:
  // Throws UserError where the model has no tokenizer.
  explicit Generator(const SavedModel& model, const DecoderOptions& options = {},
                     Loc loc = Loc::current());
  Generator(Decoder decoder, const Tokenizer& tokenizer);

  // Writes on, as many prompts at once as the decoder's batch. A prompt without a token begins
  // with the tokenizer's bos, or else its eos. A text depends on its prompt, the options and its
  // stream alone. Throws UserError as check_options(), and for prompts that are longer than the
  // context, or empty where the tokenizer has neither bos nor eos; an empty stop string;
  // max_tokens < 0.
  std::vector<Completion> generate(std::span<const std::string> prompts,
                                  const GenerateOptions& options = {}, Loc loc = Loc::current());
  Completion generate(const std::string& prompt, const GenerateOptions& options = {},
                     Loc loc = Loc::current());
  // The same for prompts that are tokens.
  std::vector<Completion> generate_from(std::span<const std::vector<std::int32_t>> prompts,
                                       const GenerateOptions& options = {},
                                       Loc loc = Loc::current());

  [[nodiscard]] const GenerationTimes& times() const { return times_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }
  [[nodiscard]] Decoder& decoder() { return decoder_; }

 private:
  Decoder decoder_;
  Tokenizer tokenizer_;
  GenerationTimes times_;
};

}  // namespace tensorgrad::lm
