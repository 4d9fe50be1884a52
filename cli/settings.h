// SPDX-License-Identifier: MIT
// What a run is: how it is trained, what its data looks like, where that lies. run.json holds it
// all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::cli {

constexpr std::int64_t kDefaultBatch = 128;

struct TrainSettings {
  int epochs = 10;
  std::int64_t batch = 0;  // 0: kDefaultBatch, or the training set where that is smaller
  double lr = 1e-3;
  double weight_decay = 1e-2;  // adamw; others have none unless asked for
  std::vector<std::int64_t> hidden = {256, 128};
  std::string optimizer = "adamw";
  std::uint32_t seed = 0;
  bool mixed_precision = false;  // a run.json without it is of a tg that knew none
  std::string label;             // CSV: the label column; empty: the last
  double holdout = 0.2;          // share of the rows, or of each class's pictures, to test on
  // Class folders: what pictures become, 0 where the first one says it. Not in run.json: read_run()
  // takes them from the shape of the images.
  std::int64_t height = 0, width = 0;
  int channels = 0;
};

// What a model must know of its data.
struct Task {
  enum class Kind { kImages, kTable };

  Kind kind = Kind::kImages;
  Shape image_shape;                       // images: [28,28], [32,32,3]
  std::vector<std::string> feature_names;  // table: one per column without the label
  bool had_header = false;                 // table
  std::string label_name;                  // table
  std::vector<std::string> class_names;
  std::int64_t train_count = 0;
  std::int64_t test_count = 0;
  std::string fingerprint;   // of the training data, in hexadecimal
  std::vector<double> mean;  // of the training set: one for all pixels / 255, or one per feature
  std::vector<double> deviation;

  [[nodiscard]] std::int64_t features() const;
  [[nodiscard]] std::int64_t classes() const {
    return static_cast<std::int64_t>(class_names.size());
  }
  // Images: 32-bit words that hold the bytes of one.
  [[nodiscard]] std::int64_t words() const { return (features() + 3) / 4; }
  // "images" or "rows".
  [[nodiscard]] const char* unit() const { return kind == Kind::kImages ? "images" : "rows"; }
};

struct Run {
  std::string data;  // absolute path
  TrainSettings settings;
  Task task;

  [[nodiscard]] std::int64_t steps_per_epoch() const { return task.train_count / settings.batch; }
  [[nodiscard]] std::int64_t total_steps() const { return steps_per_epoch() * settings.epochs; }
};

// Once the data is known. UserError: a batch that is larger than the training set.
void settle_batch(Run& run);

// The text of run.json.
std::string run_json(const Run& run);
// Reads run.json of a run folder. IoError: missing, damaged, or with values that cannot be.
Run read_run(const std::string& folder);

}  // namespace tensorgrad::cli
