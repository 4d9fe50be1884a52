// SPDX-License-Identifier: MIT
// Text generation with a language model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/data/tokenizer.h"
#include "tensorgrad/lm/decoder.h"
#include "tensorgrad/lm/sampling.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// New text of one prompt, passed to GenerateOptions::on_text.
struct GeneratedChunk {
  std::size_t prompt = 0;  ///< Index of the prompt.
  std::int32_t token = 0;  ///< Last token of the text.

  /// Whole characters that cannot be the beginning of a stop string. The last chunk of a text also
  /// holds the characters held back until then.
  std::string_view text;
};

/// Options of Generator::generate().
struct GenerateOptions {
  SamplingOptions sampling = {};               ///< Options of sampling a token from the logits.
  std::int64_t max_tokens = 256;               ///< Limit on new tokens per prompt.
  std::vector<std::string> stop = {};          ///< Strings that end a text and are left out.
  std::vector<std::int32_t> stop_tokens = {};  ///< Tokens that end a text, in addition to eos.
  bool ignore_eos = false;                     ///< Does not stop at eos.

  /// Limit on the tokens of a text that a GPU samples before the host reads them, from 1 to
  /// Decoder::kMaxSampled. It is lowered for tokens that take long. More tokens keep the GPU busy,
  /// but are computed even if the text ends before, and `on_text` is called for several at once. 1:
  /// the host samples, as it does on the CPU, with a repetition penalty, and if there are ids
  /// without a token other than the last ones.
  std::int64_t tokens_per_read = 16;

  /// Prompt k draws its random numbers from stream `first_random_stream` + k (see Sampler).
  std::uint64_t first_random_stream = 0;

  /// Called when a token completes some text of a prompt. If it returns false, the text of this
  /// prompt ends. Exceptions that it throws end generate().
  std::function<bool(const GeneratedChunk&)> on_text = nullptr;
};

/// Reason why generation of a text ended.
enum class FinishReason : std::uint8_t {
  kMaxTokens,   ///< It has GenerateOptions::max_tokens new tokens.
  kStopString,  ///< It contained one of GenerateOptions::stop.
  kStopToken,   ///< The model generated eos or one of GenerateOptions::stop_tokens.
  kContext,     ///< Prompt and new tokens fill Decoder::context().
  kCallback     ///< GenerateOptions::on_text returned false.
};

/// Returns the name of a reason: "max tokens", "stop string", "stop token", "context is full" or
/// "callback".
std::string_view to_string(FinishReason reason);

/// Generated text of one prompt.
struct Completion {
  std::string text;                  ///< Without prompt, special and stop tokens, and stop string.
  std::vector<std::int32_t> tokens;  ///< All sampled tokens, including those of the stop.
  FinishReason finish_reason = FinishReason::kMaxTokens;  ///< Reason why generation ended.
};

/// Time and number of tokens of a call of Generator::generate().
struct GenerationTimes {
  std::int64_t prompt_tokens = 0;  ///< Number of tokens in all prompts.
  std::int64_t tokens = 0;         ///< Number of tokens in all completions.
  double prompt_seconds = 0;       ///< Time to process the prompts.
  double seconds = 0;              ///< Time to sample and process the new tokens.
  std::int64_t steps = 0;          ///< Number of decoder steps, each for a batch.
};

/// Generates text with a Decoder and a Tokenizer. Ids that have no token are not sampled, for
/// vocabularies that are padded to a round size.
class Generator {
 public:
  /// Compiles a generator for a loaded model. Its eos are SavedModel::eos_ids or, if there are
  /// none, that of the tokenizer. Throws UserError if the model has no tokenizer, and the errors of
  /// Decoder.
  explicit Generator(const SavedModel& model, const DecoderOptions& options = {},
                     Loc loc = Loc::current());

  /// Creates a generator from its parts. Its eos is that of the tokenizer.
  Generator(Decoder decoder, const Tokenizer& tokenizer);

  /// Continues each prompt. Prompts are processed in batches of Decoder::batch(). An empty prompt
  /// is replaced by the bos token or, without one, the eos token. A completion depends only on its
  /// prompt, the options and its random stream, up to rounding of the logits (see
  /// Decoder::prefill()).
  ///
  /// Throws the errors of check_options() and Tokenizer::encode(). Also throws UserError if a
  /// prompt exceeds Decoder::context(), a prompt is empty and the tokenizer has neither bos nor
  /// eos, a stop string is empty, or `max_tokens` is negative.
  std::vector<Completion> generate(std::span<const std::string> prompts,
                                   const GenerateOptions& options = {}, Loc loc = Loc::current());
  Completion generate(const std::string& prompt, const GenerateOptions& options = {},
                      Loc loc = Loc::current());

  /// Like generate(), for prompts of tokens.
  std::vector<Completion> generate_from(std::span<const std::vector<std::int32_t>> prompts,
                                        const GenerateOptions& options = {},
                                        Loc loc = Loc::current());

  /// Returns the times of the last call of generate() or generate_from().
  [[nodiscard]] const GenerationTimes& times() const { return times_; }

  /// Returns the tokenizer.
  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }

  /// Returns the decoder.
  [[nodiscard]] Decoder& decoder() { return decoder_; }

 private:
  Decoder decoder_;
  Tokenizer tokenizer_;
  std::vector<std::int32_t> eos_ids_;
  GenerationTimes times_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
