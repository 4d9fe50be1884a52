// SPDX-License-Identifier: MIT
// Data in the classifier's format: images as packed bytes, tables as standardized floats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "classify/settings.h"
#include "tensorgrad/train/compile.h"

namespace tensorgrad::cli {

struct Samples {
  std::int64_t count = 0;
  std::vector<std::uint32_t> words;  // images: [count, task.words()], each image zero-padded
  std::vector<float> features;       // tables: [count, task.features()], standardized
  std::vector<std::int32_t> labels;  // [count]; empty if unknown

  // Returns the bytes of one image.
  [[nodiscard]] const std::uint8_t* image(const Task& task, std::int64_t index) const;
};

struct TrainingData {
  Task task;
  Samples train, test;
  std::int64_t skipped = 0;  // files in class folders that are not images
};

// Returns the data of a folder of IDX files, a folder of images by class, or a CSV file, with the
// mean and deviation of the training set. Throws IoError if the path does not exist or the data is
// invalid.
TrainingData read_training_data(const std::string& path, const TrainSettings& settings);

// Returns the data to test a trained model on. If `path` is empty, this is the test set of the
// run's own data; for a table or class folders, the held-out part. Otherwise it is the test set of
// the folder (all of its images if it has none) or all rows of the file. Throws IoError if the data
// has another kind, shape or classes than the model, or if the run's own data has changed.
Samples read_test_data(const Run& run, const std::string& path);

// Returns samples without labels: IDX images, a PNG or JPEG image, or CSV rows. If `label` is set,
// it names a column of the CSV file to drop. Throws IoError if the samples do not match the model.
Samples read_unlabeled(const Run& run, const std::string& path, const std::string& label);

}  // namespace tensorgrad::cli
