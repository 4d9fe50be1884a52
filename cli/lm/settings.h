// SPDX-License-Identifier: MIT
// Settings of a language-model run: model, text and training. Stored in run.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tensorgrad/data/files.h"
#include "tensorgrad/lm.h"

namespace tensorgrad::cli {

// Architecture and sizes of a new model.
struct LmShape {
  std::string arch = "hybrid";
  std::int64_t layers = 4, width = 128;
  std::int64_t state = 0;  // state size per channel or head; 0: 16 in mamba1, 64 in the others
  nn::OutNorm out_norm = nn::OutNorm::kNone;                   // Mamba-3 only
  nn::DecayActivation decay = nn::DecayActivation::kSoftplus;  // Mamba-3 only
  std::int64_t heads = 4;                                      // attention heads
  // Context length of attention, in tokens. 0: 1024, or the window length for gpt and gpt2, where
  // positions beyond the window are not trained.
  std::int64_t context = 0;
};
// Returns the names of the architectures, such as mamba1.
std::vector<std::string> lm_arches();
// Returns the configuration of a model, without vocab_size. mamba1 to mamba3 consist of Mamba
// layers only. In the others each layer is a mixer and a gated MLP. The mixers of gpt are
// attention; those of hybrid are Mamba-1, with attention in the second of every three layers; those
// of jamba and zamba come from nn::mixer_schedule(). gpt2 is nn::gpt2_config(). Other names are
// lists of kinds for nn::mixer_schedule().
nn::LanguageModelConfig lm_config(const LmShape& shape);

struct LmSettings {
  LmShape shape;
  std::string tokenizer = "characters";  // or bytes, bpe:N, a file
  std::string from;              // pretrained model; if set, `shape` and `tokenizer` are ignored
  std::string config;            // file with the configuration; if set, `shape` is ignored
  lm::TrainingOptions training;  // the device is ignored
  double holdout = 0.1;
  double max_expansion = kMaxExpansion;  // limit on the expansion of compressed texts
  std::int64_t eval_every = 0;           // steps between validations; 0: a tenth of all steps
  std::int64_t eval_windows = 128;       // maximum number of validation windows; 0: all
  int patience = 0;                      // validations without improvement; 0: no early stopping
  bool samples = true;                   // generate a sample after each validation
  bool pack = false;                     // reset the model at the start of each document
  std::string prompt;
  std::int64_t sample_tokens = 120;
};

struct LmRun {
  std::vector<std::string> data;  // absolute paths
  std::string device;             // where it was started; empty in runs of older versions of tg
  LmSettings settings;
  nn::LanguageModelConfig config;
  std::int64_t train_tokens = 0, validation_tokens = 0;
  std::string fingerprint;  // of the tokens
  // Hashes of the files that never change, by name. Empty in runs of older versions of tg.
  std::map<std::string, std::string> files;
};

// Returns the text of run.json.
std::string lm_run_json(const LmRun& run);
// Returns the run in a folder. Throws IoError if it is not a run folder of tg lm train, or if
// run.json is damaged or has values out of range.
LmRun read_lm_run(const std::string& folder);

}  // namespace tensorgrad::cli
