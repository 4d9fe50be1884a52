// SPDX-License-Identifier: MIT
// The network that tg trains: linear layers with ReLU between them, cross entropy, AdamW, cosine.
#pragma once

#include <string>
#include <vector>

#include "dataset.h"
#include "settings.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/train/compile.h"

namespace tensorgrad::cli {

using NetTrainer = Trainer<nn::Sequential>;

// The learning rate over the whole run.
Schedule schedule_of(const Run& run);

// Compiles the training step. The data are not uploaded yet.
NetTrainer compile_training(const Run& run, const DeviceOptions& device);
void upload(NetTrainer& trainer, const Task& task, const Samples& train);

// "784-256-128-10".
std::string model_text(const Run& run);
std::int64_t parameter_count(const Run& run);

// Gives class probabilities for any number of samples, in batches of one size.
class Predictor {
 public:
  // Of the trainer's parameters as they are at each call.
  Predictor(NetTrainer& trainer, const Run& run, std::int64_t count);
  // Of the parameters in a file that a trainer saved.
  Predictor(const std::string& model_path, const Run& run, const DeviceOptions& device,
            std::int64_t count);

  // Logarithms of the probabilities, [count, classes].
  std::vector<float> log_probabilities(const Samples& samples);

  [[nodiscard]] std::string device() const { return forward_.device(); }

 private:
  const Task& task_;
  std::int64_t batch_;
  CompiledFunction forward_;
};

// The model in a file that a trainer saved, as other programs call it: from "x" [batch, features],
// f32, pixels from 0 to 255 or rows as in the table, to "log_probabilities" [batch, classes]. The
// batch may be kDynamic.
CompiledFunction outside_forward(const std::string& model_path, const Run& run, std::int64_t batch);

}  // namespace tensorgrad::cli
