// SPDX-License-Identifier: MIT
// metrics.jsonl: written line by line during training, read back for the curves and to resume.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tensorgrad/data/files.h"
#include "tensorgrad/data/tensorboard.h"

namespace tensorgrad::cli {

class LiveRun;

struct StepLine {
  std::int64_t step = 0;
  int epoch = 0;
  double loss = 0;
  double lr = 0;
  double seconds = 0;
};

struct EpochLine {
  std::int64_t step = 0;
  int epoch = 0;
  double train_loss = 0;
  double test_loss = 0;
  double test_accuracy = 0;
  double images_per_second = 0;
  double seconds = 0;
};

// Written if training stops within an epoch, so that a resumed run computes the same epoch mean.
struct PauseLine {
  std::int64_t step = 0;
  int epoch = 0;
  double loss_sum = 0;  // over the steps of the epoch so far
  double seconds = 0;
};

// Written by tg lm train after each validation.
struct ValidationLine {
  std::int64_t step = 0;
  double train_loss = 0;  // mean since the previous validation, in nats per token
  double loss = 0;        // in nats per token
  double tokens_per_second = 0;
  double seconds = 0;
};
struct SampleLine {
  std::int64_t step = 0;
  std::string prompt, text;
};

struct History {
  std::vector<StepLine> steps;
  std::vector<EpochLine> epochs;
  std::vector<ValidationLine> validations;
  // The last one after the last epoch or validation; step is 0 if there is none.
  PauseLine pause;
  std::int64_t dropped = 0;  // lines that rewind_metrics() removed, except pauses
  bool truncated = false;    // the last line was incomplete
};

class Metrics {
 public:
  Metrics(const std::string& path, LineLog::Open how)
      : path_(path), log_(std::in_place, path, how) {}

  void write(const StepLine& line);
  void write(const EpochLine& line);
  void write(const PauseLine& line);
  void write(const ValidationLine& line);
  void write(const SampleLine& line);
  // Writes further lines to event files for TensorBoard too. `history` are the metrics of the steps
  // that are done: a folder without event files gets them first. `validates` is false if the loss
  // of a ValidationLine is that of the training. Throws IoError if a file cannot be written.
  void write_events(const std::string& folder, const History& history, std::int64_t steps,
                    bool validates);
  // Shows the lines of the file, and further ones as they are written. Throws IoError as
  // read_history().
  void show_on(LiveRun& live);
  // Makes the lines durable. Called before a checkpoint that counts on them is written.
  void sync() { log_->sync(); }
  // Closes the file, so that it can be replaced on Windows, too. No more writes are allowed.
  void close() { log_.reset(); }

 private:
  void put(const nlohmann::ordered_json& line);

  std::string path_;
  std::optional<LineLog> log_;
  LiveRun* live_ = nullptr;
  std::optional<TensorBoardWriter> events_;
  bool validates_ = true;
};

// Returns the metrics in a file. An incomplete last line is ignored. Throws IoError if the file
// cannot be read, or if a line is invalid or differs from its checksum.
History read_history(const std::string& path);

// Removes the lines after `step` from the file and returns the rest. Also removes pauses: all if
// `complete`, else those before `step`, because a run may be resumed from one more than once.
// Throws IoError as read_history(), or if the file cannot be written.
History rewind_metrics(const std::string& path, std::int64_t step, bool complete = false);

// Prints what rewind_metrics() removed, if anything.
void print_dropped(const History& history, std::int64_t step);

}  // namespace tensorgrad::cli
