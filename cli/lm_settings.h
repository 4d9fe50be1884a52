// SPDX-License-Identifier: MIT
// What a run of tg lm train is: its model, its text and how it is trained. run.json holds it all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/lm.h"

namespace tensorgrad::cli {

// The model, by a few words.
struct LmShape {
  std::string arch = "hybrid";
  std::int64_t layers = 4, width = 128;
  std::int64_t state = 0;  // of a channel, a head; 0: 16 in mamba1, 64 in the others
  nn::OutNorm out_norm = nn::OutNorm::kNone;  // of Mamba-3
  std::int64_t heads = 4;                     // of attention
  // Tokens that attention keeps; 0: 1024, or a window's length where nothing but attention tells
  // the places of tokens, as places that no window had are not learned.
  std::int64_t context = 0;
};
// "mamba1, mamba2, mamba3, gpt, hybrid, jamba or zamba".
std::vector<std::string> lm_arches();
// Without vocab_size. mamba1 to mamba3: layers of these alone; gpt, hybrid, jamba, zamba: each
// layer is a mixer and a gated MLP, of which the mixers are attention; Mamba-1 with attention in
// every third place from the second; nn::mixer_schedule()'s.
nn::LanguageModelConfig lm_config(const LmShape& shape);

struct LmSettings {
  LmShape shape;
  std::string tokenizer = "characters";  // bytes, bpe:N, a file
  std::string from;                      // a model to go on from; then no shape and no tokenizer
  lm::TrainingOptions training;          // but for the device
  double holdout = 0.1;
  std::int64_t eval_every = 0;      // steps; 0: a tenth of them
  std::int64_t eval_windows = 128;  // of the validation text, at most; 0: all
  int patience = 0;                 // validations without a better one; 0: no early stop
  bool samples = true;              // after each validation
  std::string prompt;
  std::int64_t sample_tokens = 120;
};

struct LmRun {
  std::vector<std::string> data;  // absolute paths
  LmSettings settings;
  nn::LanguageModelConfig config;
  std::int64_t train_tokens = 0, validation_tokens = 0;
  std::string fingerprint;  // of the tokens
};

std::string lm_run_json(const LmRun& run);
// IoError: no run folder, of another kind, damaged, or with values that cannot be.
LmRun read_lm_run(const std::string& folder);

}  // namespace tensorgrad::cli
