// SPDX-License-Identifier: MIT
// Writing and reading of run.json. Every value read is checked for its type and range.
#include "classify/settings.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "os/process.h"
#include "run/json_object.h"
#include "run/run_folder.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "tensorgrad run";
constexpr int kVersion = 1;
constexpr std::uint64_t kMaxSettingsBytes = 256 << 20;
constexpr std::size_t kMaxClasses = 65'536;

TrainSettings read_settings(const JsonObject& in) {
  TrainSettings s;
  s.epochs = static_cast<int>(in.integer("epochs", 1, 1'000'000));
  s.batch = in.integer("batch", 1, kMaxCount);
  s.lr = in.number("lr", 0, 1e30);
  s.weight_decay = in.number("weight_decay", 0, 1e30);
  s.hidden = in.integers("hidden", 1000);
  s.optimizer = in.text("optimizer");
  if (s.optimizer != "adamw" && s.optimizer != "adam" && s.optimizer != "sgd") {
    in.fail("settings.optimizer", "expected adamw, adam or sgd");
  }
  s.seed = static_cast<std::uint32_t>(in.integer("seed", 0, UINT32_MAX));
  s.mixed_precision = in.boolean_or("mixed_precision", false);
  s.label = in.text("label");
  s.header = in.text_or("header", "auto");
  if (s.header != "auto" && s.header != "yes" && s.header != "no")
    in.fail("settings.header", "expected auto, yes or no");
  s.holdout = in.number("holdout", 0, 1);
  s.max_expansion = in.number_or("max_expansion", 0, 1e30, kMaxExpansion);
  return s;
}

Task read_task(const JsonObject& in) {
  Task task;
  const std::string kind = in.text("kind");
  if (kind != "images" && kind != "table") in.fail("task.kind", "expected images or table");
  task.kind = kind == "images" ? Task::Kind::kImages : Task::Kind::kTable;
  if (task.kind == Task::Kind::kImages) {
    task.image_shape = in.integers("image_shape", 8);
    double elements = 1;
    for (const std::int64_t size : task.image_shape) elements *= static_cast<double>(size);
    if (task.image_shape.empty() || elements > kMaxCount) {
      in.fail("task.image_shape", "expected the sizes of an image");
    }
  } else {
    task.feature_names = in.texts("feature_names", kMaxCount);
    task.had_header = in.boolean("had_header");
    task.label_name = in.text("label_name");
    if (task.feature_names.empty()) in.fail("task.feature_names", "expected at least one");
  }
  task.class_names = in.texts("class_names", kMaxClasses);
  if (task.class_names.empty()) in.fail("task.class_names", "expected at least one");
  task.train_count = in.integer("train_count", 1, kMaxCount);
  task.test_count = in.integer("test_count", 1, kMaxCount);
  task.fingerprint = in.text("fingerprint");
  task.mean = in.numbers("mean", -1e300);
  task.deviation = in.numbers("deviation", 1e-300);
  const std::size_t wanted =
      task.kind == Task::Kind::kImages ? 1 : static_cast<std::size_t>(task.features());
  if (task.mean.size() != wanted || task.deviation.size() != wanted) {
    in.fail("task.mean and task.deviation", fmt::format("expected {} numbers", wanted));
  }
  return task;
}

// New images are converted to the format of the training images.
void take_image_size(const Task& task, TrainSettings& settings) {
  const Shape& shape = task.image_shape;
  if (task.kind != Task::Kind::kImages || shape.size() < 2 || shape.size() > 3) return;
  const std::int64_t channels = shape.size() == 3 ? shape[2] : 1;
  if (channels != 1 && channels != 3) return;
  settings.height = shape[0];
  settings.width = shape[1];
  settings.channels = static_cast<int>(channels);
}

Json task_json(const Task& task) {
  Json out;
  const bool images = task.kind == Task::Kind::kImages;
  out["kind"] = images ? "images" : "table";
  if (images) {
    out["image_shape"] = task.image_shape;
  } else {
    out["feature_names"] = task.feature_names;
    out["had_header"] = task.had_header;
    out["label_name"] = task.label_name;
  }
  out["class_names"] = task.class_names;
  out["train_count"] = task.train_count;
  out["test_count"] = task.test_count;
  out["fingerprint"] = task.fingerprint;
  out["mean"] = task.mean;
  out["deviation"] = task.deviation;
  return out;
}

}  // namespace

std::int64_t Task::features() const {
  return kind == Kind::kImages ? numel(image_shape)
                               : static_cast<std::int64_t>(feature_names.size());
}

void settle_batch(Run& run) {
  std::int64_t& batch = run.settings.batch;
  if (batch == 0) batch = std::min(kDefaultBatch, run.task.train_count);
  if (batch <= run.task.train_count) return;
  throw UserError(fmt::format("--batch {}: the training set has {} {}", batch, run.task.train_count,
                              run.task.unit()));
}

std::string run_json(const Run& run) {
  Json out;
  out["format"] = kFormat;
  out["version"] = kVersion;
  out["tensorgrad"] = TENSORGRAD_VERSION_STRING;
  out["device"] = run.device;
  out["data"] = path_json(run.data);
  const TrainSettings& s = run.settings;
  out["settings"] = {{"epochs", s.epochs},
                     {"batch", s.batch},
                     {"lr", s.lr},
                     {"weight_decay", s.weight_decay},
                     {"hidden", s.hidden},
                     {"optimizer", s.optimizer},
                     {"schedule", "cosine to 0"},
                     {"seed", s.seed},
                     {"mixed_precision", s.mixed_precision},
                     {"label", s.label},
                     {"header", s.header},
                     {"holdout", s.holdout},
                     {"max_expansion", s.max_expansion}};
  out["task"] = task_json(run.task);
  return with_checksum(std::move(out));
}

Run read_run(const std::string& folder) {
  const std::string path = run_path(folder, RunFile::kRun);
  std::error_code ignored;
  if (!std::filesystem::is_directory(os::utf8_path(folder), ignored)) {
    throw IoError(folder + ": not a run folder");
  }
  finish_replacement(folder);
  const Json json = read_json_file(path, kMaxSettingsBytes);
  const JsonObject in(json, path, "");
  in.check_run(kFormat, kVersion, "tg train");
  Run run;
  run.device = in.text_or("device", "");
  run.data = in.path("data");
  run.settings = read_settings(in.object("settings"));
  run.task = read_task(in.object("task"));
  take_image_size(run.task, run.settings);
  if (run.settings.batch > run.task.train_count) {
    in.fail("settings.batch", "expected at most task.train_count");
  }
  in.check_checksum();
  return run;
}

}  // namespace tensorgrad::cli
