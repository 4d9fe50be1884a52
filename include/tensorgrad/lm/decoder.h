// SPDX-License-Identifier: MIT
// A language model that goes on from token to token: what it keeps of the texts so far stays on the
// device and has one size, however long they are. B texts at once, V tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensorgrad/train/compile.h"
#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::lm {

struct DecoderOptions {
  std::int64_t batch = 1;  // texts at once
  // Prompts are gone over in pieces of 4^k tokens, the largest of at most so many: each size is
  // compiled once, and then serves prompts of every length. At most 1024.
  std::int64_t max_chunk = 256;
  DeviceOptions device = {};  // an attached decoder has the trainer's
};

class Decoder {
 public:
  // Of weights that were loaded. Throws as check_weights() and compile_function().
  explicit Decoder(const SavedModel& model, const DecoderOptions& options = {},
                   Loc loc = Loc::current());
  // Of what a trainer has at each call.
  explicit Decoder(Trainer<nn::LanguageModel>& trainer, const DecoderOptions& options = {},
                   Loc loc = Loc::current());
  // Of any function from "tokens" i32 [batch, kDynamic] and "keep" [batch] to logits [batch, V] of the
  // last tokens, as nn::LanguageModel::resume_last() computes it.
  Decoder(CompiledFunction forward, const DecoderOptions& options, Loc loc = Loc::current());

  // The inputs of such a function.
  static std::vector<InputSpec> inputs(std::int64_t batch);

  // Begins new texts: at most as many as `batch`, each of one token or more. Gives the logits after
  // each text, [B, V]; rows without a text hold nothing of use. What a text gives does not depend
  // on the others, but for the last bits: a shorter one begins where as much is left of the others.
  // Logits can be read until the decoder is called again. Throws UserError for no texts, too many,
  // or one without a token.
  std::span<const float> prefill(std::span<const std::vector<std::int32_t>> texts,
                               Loc loc = Loc::current());
  // The next token of each text [batch]; the logits after it, [B, V].
  std::span<const float> step(std::span<const std::int32_t> tokens, Loc loc = Loc::current());

  [[nodiscard]] std::int64_t batch() const { return options_.batch; }
  // The tokens that a text can have: those that attention layers keep; 0: any number. A decoder of
  // a function does not know it, and has to be told.
  [[nodiscard]] std::int64_t context() const { return context_; }
  void set_context(std::int64_t tokens) { context_ = tokens; }
  [[nodiscard]] const CompiledFunction& forward() const { return forward_; }
  [[nodiscard]] CompiledFunction& forward() { return forward_; }

 private:
  std::span<const float> run(std::span<const std::int32_t> tokens, const std::vector<float>& keep,
                             Loc loc);

  CompiledFunction forward_;
  DecoderOptions options_;
  std::int64_t context_ = 0;
  HostTensor logits_;  // f32
};

// The most tokens that a text of such a model can have: CausalAttention::Options::max_length where
// it has attention layers; else 0, any number.
std::int64_t max_context(const nn::LanguageModelConfig& config);

}  // namespace tensorgrad::lm
