// SPDX-License-Identifier: MIT
// Settings of a classifier run: training, format of the data and its path. Stored in run.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/data/files.h"
#include "tensorgrad/types.h"

namespace tensorgrad::cli {

constexpr std::int64_t kDefaultBatch = 128;

struct TrainSettings {
  int epochs = 10;
  std::int64_t batch = 0;  // 0: kDefaultBatch, or the training set if that is smaller
  double lr = 1e-3;
  double weight_decay = 1e-2;  // default of adamw; 0 for the others
  std::vector<std::int64_t> hidden = {256, 128};
  std::string optimizer = "adamw";
  std::uint32_t seed = 0;
  bool mixed_precision = false;  // false if run.json lacks it (older versions of tg)
  std::string label;             // CSV: label column; the last one if empty
  std::string header = "auto";   // CSV: whether line 1 is a header: auto, yes or no
  double holdout = 0.2;          // fraction of the rows, or of each class's images, for testing
  double max_expansion = kMaxExpansion;  // CSV: limit on the expansion of a compressed table
  // Class folders: format that images are converted to; 0: that of the first image. Not in
  // run.json: read_run() takes them from the shape of the images.
  std::int64_t height = 0, width = 0;
  int channels = 0;
};

// Format and statistics of the data, as needed to apply the model.
struct Task {
  enum class Kind { kImages, kTable };

  Kind kind = Kind::kImages;
  Shape image_shape;                       // images: [28,28], [32,32,3]
  std::vector<std::string> feature_names;  // table: one per column except the label
  bool had_header = false;                 // table
  std::string label_name;                  // table
  std::vector<std::string> class_names;
  std::int64_t train_count = 0;
  std::int64_t test_count = 0;
  std::string fingerprint;   // hash of the training data, in hexadecimal
  std::vector<double> mean;  // of the training set: one for all pixels / 255, or one per feature
  std::vector<double> deviation;

  // Returns the number of pixel values per image, or of feature columns.
  [[nodiscard]] std::int64_t features() const;
  [[nodiscard]] std::int64_t classes() const {
    return static_cast<std::int64_t>(class_names.size());
  }
  // Returns the number of 32-bit words per image.
  [[nodiscard]] std::int64_t words() const { return (features() + 3) / 4; }
  // Returns "images" or "rows".
  [[nodiscard]] const char* unit() const { return kind == Kind::kImages ? "images" : "rows"; }
};

struct Run {
  std::string data;    // absolute path
  std::string device;  // where it was started; empty in runs of older versions of tg
  TrainSettings settings;
  Task task;

  [[nodiscard]] std::int64_t steps_per_epoch() const { return task.train_count / settings.batch; }
  [[nodiscard]] std::int64_t total_steps() const { return steps_per_epoch() * settings.epochs; }
};

// Sets the default batch size if it is 0. Requires the task. Throws UserError if the batch is
// larger than the training set.
void settle_batch(Run& run);

// Returns the text of run.json.
std::string run_json(const Run& run);
// Returns the run in a folder. Throws IoError if run.json is missing or damaged, or has values out
// of range.
Run read_run(const std::string& folder);

}  // namespace tensorgrad::cli
