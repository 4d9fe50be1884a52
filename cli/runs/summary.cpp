// SPDX-License-Identifier: MIT
#include "runs/summary.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "classify/classifier.h"
#include "classify/settings.h"
#include "lm/settings.h"
#include "os/process.h"
#include "run/json_object.h"
#include "run/run_folder.h"
#include "tensorgrad/error.h"
#include "tensorgrad/train/monitor.h"

namespace tensorgrad::cli {
namespace {

using SummaryJson = nlohmann::ordered_json;

constexpr std::uint64_t kMaxSummaryBytes = 256 << 20;  // as for a run of tg train

// Members of run.json that are no options: they describe the file, or follow from the data.
constexpr std::string_view kNoOptions[] = {
    "format",    "version",        "checksum",         "files",
    "task.mean", "task.deviation", "task.class_names", "task.feature_names"};

void add_options(const SummaryJson& object, const std::string& prefix, RunSummary& summary) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (std::find(std::begin(kNoOptions), std::end(kNoOptions), name) != std::end(kNoOptions))
      continue;
    if (value.is_object()) {
      add_options(value, name == "settings" ? "" : name + ".", summary);
    } else {
      summary.options.emplace_back(name, value);
    }
  }
}

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

void take_evaluation(double loss, RunSummary& summary) {
  summary.last_loss = finite(loss);
  if (summary.last_loss) summary.best_loss = std::min(loss, summary.best_loss.value_or(loss));
}

// Returns true if the run has reached its end.
bool take_classifier(const std::string& folder, RunSummary& summary) {
  const Run run = read_run(folder);
  summary.model = model_text(run);
  summary.device = run.device;
  summary.total_steps = run.total_steps();
  summary.steps_per_epoch = static_cast<double>(run.steps_per_epoch());
  for (const EpochLine& line : summary.history.epochs) {
    summary.train_loss = finite(line.train_loss);
    take_evaluation(line.test_loss, summary);
    summary.accuracy = finite(line.test_accuracy);
  }
  return !summary.history.epochs.empty() &&
         summary.history.epochs.back().step >= summary.total_steps;
}

bool take_language_model(const std::string& folder, RunSummary& summary) {
  const LmRun run = read_lm_run(folder);
  summary.model = fmt::format("{}, {} layers of {}", run.settings.shape.arch, run.config.n_layer,
                              run.config.d_model);
  summary.device = run.device;
  summary.total_steps = run.settings.training.steps;
  summary.has_validation = run.validation_tokens > 1;
  EarlyStopping stop(run.settings.patience);
  for (const ValidationLine& line : summary.history.validations) {
    summary.train_loss = finite(line.train_loss);
    if (summary.has_validation) take_evaluation(line.loss, summary);
    (void)stop.update(line.loss);
  }
  if (summary.best_loss) summary.perplexity = std::exp(*summary.best_loss);
  return !summary.history.validations.empty() &&
         (summary.history.validations.back().step >= summary.total_steps || stop.should_stop());
}

}  // namespace

RunSummary read_summary(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(os::utf8_path(folder), ignored))
    throw IoError(folder + ": not a run folder");
  finish_replacement(folder);
  if (!is_run_folder(folder)) throw IoError(folder + ": not a run folder: it has no run.json");
  RunSummary summary;
  summary.folder = folder;
  // A folder such as "." has its name in its absolute path.
  fs::path whole = fs::absolute(os::utf8_path(folder)).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  summary.name = os::utf8_text(whole.filename());
  const std::string path = run_path(folder, RunFile::kRun);
  const SummaryJson json = read_json_file(path, kMaxSummaryBytes);
  const JsonObject in(json, path, "");
  summary.is_lm = in.text("format").starts_with("tensorgrad lm");
  // Locked before the metrics are read: a run that ends in between is seen as finished.
  const bool running = is_locked(folder);
  summary.history = read_history(run_path(folder, RunFile::kMetrics));
  const bool complete =
      summary.is_lm ? take_language_model(folder, summary) : take_classifier(folder, summary);
  summary.state = complete ? "finished" : running ? "running" : "stopped";
  add_options(json, "", summary);
  const auto take_line = [&](std::int64_t step, double seconds) {
    if (step < summary.steps) return;
    summary.steps = step;
    if (std::isfinite(seconds)) summary.seconds = seconds;
  };
  for (const StepLine& line : summary.history.steps) take_line(line.step, line.seconds);
  for (const EpochLine& line : summary.history.epochs) take_line(line.step, line.seconds);
  for (const ValidationLine& line : summary.history.validations) take_line(line.step, line.seconds);
  take_line(summary.history.pause.step, summary.history.pause.seconds);
  if (!summary.train_loss && !summary.history.steps.empty())
    summary.train_loss = finite(summary.history.steps.back().loss);
  return summary;
}

}  // namespace tensorgrad::cli
