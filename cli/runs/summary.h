// SPDX-License-Identifier: MIT
// What a run folder says about its run: options, progress and results.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "run/metrics.h"

namespace tensorgrad::cli {

struct RunSummary {
  std::string folder;
  std::string name;    // last part of the folder
  bool is_lm = false;  // of tg lm train, not tg train
  std::string model;   // "784-256-128-10", "hybrid, 8 layers of 128"
  std::string device;  // empty if unknown
  std::string state;   // "running", "finished" or "stopped"
  std::int64_t steps = 0, total_steps = 0;
  std::optional<double> train_loss;  // mean of the last epoch, or since the last validation
  // Of the test set or the validation text; empty without one.
  std::optional<double> last_loss, best_loss;
  // Of the saved model: the last test accuracy, or the perplexity at the best validation.
  std::optional<double> accuracy, perplexity;
  double seconds = 0;           // of training
  double steps_per_epoch = 0;   // 0 for tg lm train
  bool has_validation = false;  // tg lm train: there is a validation text
  History history;
  // The members of run.json that describe data, model and training, in the order of the file.
  // Members of objects have names such as "config.heads"; those of "settings" have their own.
  std::vector<std::pair<std::string, nlohmann::ordered_json>> options;
};

// Returns the summary of a run. Throws IoError if `folder` is not a run folder, or if run.json or
// metrics.jsonl is missing or damaged.
RunSummary read_summary(const std::string& folder);

}  // namespace tensorgrad::cli
