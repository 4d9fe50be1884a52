// SPDX-License-Identifier: MIT
// Data as the classifier takes it: images as bytes in words, tables as standardised floats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settings.h"
#include "tensorgrad/train/compile.h"

namespace tensorgrad::cli {

struct Samples {
  std::int64_t count = 0;
  std::vector<std::uint32_t> words;  // images: [count, task.words()], rows padded with zeros
  std::vector<float> features;       // tables: [count, task.features()], standardised
  std::vector<std::int32_t> labels;  // [count]; empty if not known

  // The bytes of one image.
  [[nodiscard]] const std::uint8_t* image(const Task& task, std::int64_t index) const;
};

struct TrainingData {
  Task task;
  Samples train, test;
  std::int64_t skipped = 0;  // files among the pictures that are none
};

// Reads a folder of IDX files or of pictures by class, or a CSV file, and measures the training
// set.
TrainingData read_training_data(const std::string& path, const TrainSettings& settings);

// What a trained model is to be tested on. Empty path: the run's own data, and of a table or of
// pictures those held out; else the test set of the folder, all of its pictures if it has none, or
// every row of the file. IoError: data of another kind, shape or classes.
Samples read_test_data(const Run& run, const std::string& path);

// Samples without labels: IDX images, a PNG or JPEG, or rows. `label` names a column of a CSV file
// that is to be left out.
Samples read_unlabelled(const Run& run, const std::string& path, const std::string& label);

}  // namespace tensorgrad::cli
