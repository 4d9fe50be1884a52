// SPDX-License-Identifier: MIT
// tg lm: language models from text, and text from them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lm_settings.h"
#include "tensorgrad/train/device.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name that others gave
class App;
}

namespace tensorgrad::cli {

struct LmTrainArguments {
  std::vector<std::string> data;
  std::string out;
  std::string resume;           // a run folder; then `out`, `force` and `settings` do not count
  std::int64_t stop_after = 0;  // this step is the last for now; 0: go on to the end
  bool force = false;
  LmSettings settings;
  DeviceOptions device;
};
int lm_train(const LmTrainArguments& arguments);

struct LmGenerateArguments {
  std::string model;  // a run folder, or a file
  std::vector<std::string> prompts;
  std::int64_t count = 1;  // texts of each
  std::int64_t batch = 0;  // at once; 0: all, at most 16
  lm::GenerateOptions options;
  bool json = false, quiet = false;
  DeviceOptions device;
};
int lm_generate(const LmGenerateArguments& arguments);

struct LmEvalArguments {
  std::string model;
  std::vector<std::string> data;  // none: the run's validation text
  lm::ScoreOptions options;
  bool json = false;
  DeviceOptions device;
};
int lm_eval(const LmEvalArguments& arguments);

struct LmImportArguments {
  std::string from;  // a folder of transformers' or mamba-ssm's, or a file of MBJS
  std::string out;
  bool tokenizer = true;
  bool euler = false;  // MBJS alone
};
int lm_import(const LmImportArguments& arguments);

struct LmQuantizeArguments {
  std::string model;
  std::string out;
  nn::WeightFormat format = nn::WeightFormat::kInt8;
};
int lm_quantize(const LmQuantizeArguments& arguments);

// model.safetensors of a run folder, or the file itself.
std::string lm_model_path(const std::string& model);

// Adds the command with its subcommands; `action` becomes the one that was chosen.
void add_lm(CLI::App& app, std::function<int()>& action);

}  // namespace tensorgrad::cli
