// SPDX-License-Identifier: MIT
// metrics.jsonl: written line by line while training, read back for the curves and to go on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/data/files.h"

namespace tensorgrad::cli {

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

// Written when training stops inside of an epoch, so that the epoch's mean can go on.
struct PauseLine {
  std::int64_t step = 0;
  int epoch = 0;
  double loss_sum = 0;  // of the epoch's steps so far
  double seconds = 0;
};

// Of a language model.
struct ValidationLine {
  std::int64_t step = 0;
  double train_loss = 0;  // mean since the last such line; nats a token
  double loss = 0;        // nats a token
  double tokens_per_second = 0;
  double seconds = 0;
};
struct SampleLine {
  std::int64_t step = 0;
  std::string prompt, text;
};

class Metrics {
 public:
  Metrics(const std::string& path, LineLog::Open how) : log_(path, how) {}

  void write(const StepLine& line);
  void write(const EpochLine& line);
  void write(const PauseLine& line);
  void write(const ValidationLine& line);
  void write(const SampleLine& line);

 private:
  LineLog log_;
};

struct History {
  std::vector<StepLine> steps;
  std::vector<EpochLine> epochs;
  std::vector<ValidationLine> validations;
  PauseLine pause;  // the last one; step 0 if there is none
};

// IoError names a line that is none of ours. A last line that was cut short is left out.
History read_history(const std::string& path);

// Drops what was written after `step` steps were done, and every pause but that of this very step,
// from which a run may have to go on more than once; so does the history that it returns.
History rewind_metrics(const std::string& path, std::int64_t step);

}  // namespace tensorgrad::cli
