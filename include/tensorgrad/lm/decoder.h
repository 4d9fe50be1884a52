// SPDX-License-Identifier: MIT
// Token-by-token decoding with a language model. The recurrent states and the key-value cache stay
// on the device. B is the number of texts decoded together, V the size of the vocabulary.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tensorgrad/lm/checkpoint.h"
#include "tensorgrad/lm/sampling.h"
#include "tensorgrad/train/compile.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Options of a Decoder. The constructors throw UserError if a value is out of range.
struct DecoderOptions {
  std::int64_t batch = 1;  ///< Number of texts decoded together; at least 1.

  /// Largest chunk of a prompt, from 1 to 1024 tokens. Prompts of any length are processed in
  /// chunks of 4^k tokens. Each chunk size is compiled once.
  std::int64_t max_chunk = 256;

  DeviceOptions device = {};  ///< Not used with a trainer, whose device is used.
};

/// Computes next-token logits for up to B texts at once. The memory of its states does not depend
/// on the length of the texts.
class Decoder {
 public:
  /// Compiles a decoder with the weights of a loaded model. Throws the errors of compile_function()
  /// and CompiledFunction::upload_params().
  explicit Decoder(const SavedModel& model, const DecoderOptions& options = {},
                   Loc loc = Loc::current());

  /// Attaches a decoder to a trainer. Each call uses the current parameters.
  explicit Decoder(Trainer<nn::LanguageModel>& trainer, const DecoderOptions& options = {},
                   Loc loc = Loc::current());

  /// Wraps a function from inputs() to the logits [B, V] of the last tokens, such as
  /// nn::LanguageModel::resume_last(). Its context() is 0 until set_context() is called.
  Decoder(CompiledFunction forward, const DecoderOptions& options, Loc loc = Loc::current());

  /// Returns the inputs of a function that a decoder wraps: "tokens" i32 [batch, kDynamic], and
  /// "keep" [batch] with 1 to continue a text and 0 to start a new one.
  static std::vector<InputSpec> inputs(std::int64_t batch);

  /// Starts new texts and returns the logits [B, V] after each of them. Expects 1 to B texts of at
  /// least one token each. Rows without a text are unspecified. The logits are valid until the next
  /// call. Throws UserError if the number of texts is out of range, a text is empty, or a text is
  /// longer than LanguageModelConfig::n_positions, if that is set.
  ///
  /// The logits of a text do not depend on the other texts, except for the last bits: all texts end
  /// at the same step, and the lengths of the others change where its chunks begin.
  std::span<const float> prefill(std::span<const std::vector<std::int32_t>> texts,
                                 Loc loc = Loc::current()) TENSORGRAD_LIFETIMEBOUND;

  /// Appends one token to each text and returns the logits [B, V] after it, valid until the next
  /// call. Expects B tokens; those of rows without a text have no effect on the others. If
  /// LanguageModelConfig::n_positions is set, the logits of longer texts are NaN; throws UserError
  /// if all texts are longer.
  std::span<const float> step(std::span<const std::int32_t> tokens,
                              Loc loc = Loc::current()) TENSORGRAD_LIFETIMEBOUND;

  /// Limit on the tokens of a text that sample() returns.
  static constexpr std::int64_t kMaxSampled = 32;

  /// Returns true if prefill_and_sample() and sample() can be called, which holds for decoders of
  /// models and trainers.
  [[nodiscard]] bool samples_on_device() const { return vocabulary_ > 0; }

  /// Like prefill(), but the device samples a token after each text, with one sampler per text.
  /// Returns B tokens. Those of rows without a text are 0. Tokens from `tokens` on are not sampled;
  /// 0: all can be. A number is negative if the logits of its text are unusable; see check_token().
  ///
  /// Throws the errors of prefill(). Also throws UserError if the number of samplers differs from
  /// that of texts, or if a sampler has a repetition penalty.
  std::vector<std::int32_t> prefill_and_sample(std::span<const std::vector<std::int32_t>> texts,
                                               std::span<Sampler> samplers, std::int64_t tokens = 0,
                                               Loc loc = Loc::current());

  /// Appends the last token that was sampled to each text and samples the next one, `count` times,
  /// without returning to the host. Returns the new tokens, [count, B]. Follows
  /// prefill_and_sample() or another call of sample(), with the same samplers.
  ///
  /// Throws UserError unless `count` is from 1 to kMaxSampled, if it follows another call, and as
  /// step() and prefill_and_sample().
  std::vector<std::int32_t> sample(std::int64_t count, std::span<Sampler> samplers,
                                   std::int64_t tokens = 0, Loc loc = Loc::current());

  /// Measures the launches of a step that appends `chunk` tokens to each text; see
  /// CompiledFunction::profile(). Start new texts afterwards. Throws UserError if `chunk` is not a
  /// power of four up to DecoderOptions::max_chunk.
  Profile profile(std::int64_t chunk = 1, const ProfileOptions& options = {},
                  Loc loc = Loc::current());

  /// Returns the size of the vocabulary, V, for decoders of models and trainers, else 0.
  [[nodiscard]] std::int64_t vocabulary() const { return vocabulary_; }

  /// Returns the number of texts decoded together, B.
  [[nodiscard]] std::int64_t batch() const { return options_.batch; }

  /// Returns the maximum number of tokens of a text (see max_context()), or 0 if there is no limit.
  /// The decoder itself enforces only LanguageModelConfig::n_positions.
  [[nodiscard]] std::int64_t context() const { return context_; }

  /// Sets the maximum number of tokens of a text, for a decoder of a function.
  void set_context(std::int64_t tokens) { context_ = tokens; }

  /// Returns the compiled function.
  [[nodiscard]] const CompiledFunction& forward() const { return forward_; }
  [[nodiscard]] CompiledFunction& forward() { return forward_; }

 private:
  // Runs a chunk of the texts, the last one if `last` is true.
  using RunChunk = std::function<void(std::span<const std::int32_t> tokens,
                                      const std::vector<float>& keep, bool last)>;

  void run_chunks(std::span<const std::vector<std::int32_t>> texts, const RunChunk& run, Loc loc);
  // Views `tokens`.
  [[nodiscard]] FeedView feed(std::span<const std::int32_t> tokens, std::vector<float> keep,
                              std::span<Sampler> samplers, std::int64_t limit) const;
  void run(std::span<const std::int32_t> tokens, const std::vector<float>& keep, Loc loc);
  void run_and_sample(std::span<const std::int32_t> tokens, const std::vector<float>& keep,
                      std::span<Sampler> samplers, std::int64_t limit, Loc loc);
  [[nodiscard]] std::vector<std::int32_t> last_sampled(std::int64_t count, Loc loc) const;
  void check_samplers(std::span<Sampler> samplers, Loc loc) const;
  void check_length(std::int64_t length, Loc loc) const;

  CompiledFunction forward_;
  DecoderOptions options_;
  std::int64_t context_ = 0;
  std::int64_t n_positions_ = 0;  // 0: texts have any length
  std::int64_t shortest_ = 0;     // length of the shortest text
  HostTensor logits_;             // f32
  std::int64_t vocabulary_ = 0;   // of models and trainers
  NamedDeviceTensors sampled_;    // outputs of the last call, if it sampled
};

/// Returns the maximum number of tokens of a text: the smaller of
/// CausalAttention::Options::max_length, if the model has attention layers, and
/// LanguageModelConfig::n_positions, if it is set; else 0 for no limit.
std::int64_t max_context(const nn::LanguageModelConfig& config);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
