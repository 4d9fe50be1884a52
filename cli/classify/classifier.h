// SPDX-License-Identifier: MIT
// The classifier that tg trains: linear layers with ReLU between them, a cross-entropy loss and a
// cosine learning-rate schedule.
#pragma once

#include <string>
#include <vector>

#include "classify/dataset.h"
#include "classify/settings.h"
#include "run/ranks.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/train/compile.h"

namespace tensorgrad::cli {

using NetTrainer = Trainer<nn::Sequential>;

// Returns the learning-rate schedule of the whole run: a cosine from settings.lr to 0.
Schedule schedule_of(const Run& run);

// Compiles the training step, of which each rank does its part. Does not upload the data.
NetTrainer compile_training(const Run& run, const DeviceOptions& device, const Ranks& ranks = {});
// Uploads the training set.
void upload(NetTrainer& trainer, const Task& task, const Samples& train);

// Returns the layer sizes as text, such as "784-256-128-10".
std::string model_text(const Run& run);
// Returns the number of trained parameters.
std::int64_t parameter_count(const Run& run);

// Predicts class probabilities for any number of samples, in batches of a fixed size.
class Predictor {
 public:
  // Uses the current parameters of the trainer at each call. The batch size is at most `count`.
  Predictor(NetTrainer& trainer, const Run& run, std::int64_t count);
  // Uses the parameters in a file that a trainer saved. Throws IoError if the file cannot be read,
  // and UserError if it does not match the model.
  Predictor(const std::string& model_path, const Run& run, const DeviceOptions& device,
            std::int64_t count);

  // Returns the log probabilities, [count, classes].
  std::vector<float> log_probabilities(const Samples& samples);
  // As above, but the ranks share the batches. All ranks must call it; each gets all results.
  // Throws Interrupted on all ranks if one has caught a signal.
  std::vector<float> log_probabilities(const Samples& samples, const Ranks& ranks);

  [[nodiscard]] std::string device() const { return forward_.device(); }

 private:
  // Returns those of one batch, [batch_, classes].
  std::vector<float> predict(const Samples& samples, std::int64_t from);

  const Task& task_;
  std::int64_t batch_;
  CompiledFunction forward_;
};

// Returns the model in a file that a trainer saved, with the interface for other programs. The
// input "x" is f32 [batch, features]: pixels from 0 to 255, or columns as in the table. The output
// is "log_probabilities" [batch, classes]. `batch` may be kDynamic. Throws IoError if the file
// cannot be read, and UserError if it does not match the model.
CompiledFunction outside_forward(const std::string& model_path, const Run& run, std::int64_t batch);

}  // namespace tensorgrad::cli
