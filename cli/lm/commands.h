// SPDX-License-Identifier: MIT
// The tg lm subcommands: language models and their text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lm/settings.h"
#include "run/mpi.h"
#include "run/run_folder.h"
#include "tensorgrad/train/device.h"
#include "ui/view.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace tensorgrad::cli {

struct LmTrainArguments {
  std::vector<std::string> data;
  std::string out;
  std::string resume;           // run folder; if set, `out`, `force` and `settings` are ignored
  std::int64_t stop_after = 0;  // step to stop after; 0: train to the end
  double checkpoint_seconds = kCheckpointSeconds;
  bool force = false;
  bool tensorboard = false;  // write event files; a resumed run that has some continues to do so
  UiOptions ui;
  LmSettings settings;
  DeviceOptions device;
  RankOptions ranks;
};
int lm_train(const LmTrainArguments& arguments);

struct LmGenerateArguments {
  std::string model;  // run folder or model file
  std::vector<std::string> prompts;
  std::int64_t count = 1;  // texts per prompt
  std::int64_t batch = 0;  // texts generated at once; 0: all, at most 16
  lm::GenerateOptions options;
  bool json = false, quiet = false;
  DeviceOptions device;
};
int lm_generate(const LmGenerateArguments& arguments);

struct LmEvalArguments {
  std::string model;
  std::vector<std::string> data;  // if empty, the validation text of the run
  lm::ScoreOptions options;
  bool eos = false;  // ends each text of `data` with eos, as in training
  bool json = false;
  DeviceOptions device;
};
int lm_eval(const LmEvalArguments& arguments);

struct LmEmbedArguments {
  std::string model;
  std::vector<std::string> texts;
  std::string lines;  // file with one more text per line
  std::string out;    // FILE.npy; if empty, prints JSON lines
  lm::EmbedOptions options;
};
int lm_embed(const LmEmbedArguments& arguments);

struct LmImportArguments {
  std::string from;  // folder of transformers or mamba-ssm, FILE.gguf, or MBJS file
  std::string out;
  bool tokenizer = true;
  std::int64_t context = 0;  // limit of attention layers; 0: that of the configuration
  bool euler = false;        // MBJS only: weights trained with Euler discretization
};
int lm_import(const LmImportArguments& arguments);

struct LmExportArguments {
  std::string model;
  std::string out;  // FILE.onnx, FILE.gguf or a folder
  bool tokenizer = true;
  DeviceOptions device;
};
int lm_export(const LmExportArguments& arguments);

struct LmQuantizeArguments {
  std::string model;
  std::string out;
  nn::WeightFormat format = nn::WeightFormat::kInt8;
};
int lm_quantize(const LmQuantizeArguments& arguments);

// Returns the path of model.safetensors if `model` is a run folder, else `model`. Throws UserError
// if `model` is a folder of another library.
std::string lm_model_path(const std::string& model);

// Adds the lm command and its subcommands. Parsing sets `action` to the selected one.
void add_lm(CLI::App& app, std::function<int()>& action);

}  // namespace tensorgrad::cli
