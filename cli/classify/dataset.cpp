// SPDX-License-Identifier: MIT
// Reads IDX files, folders of images and CSV files.
#include "classify/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "classify/fingerprint.h"
#include "os/process.h"
#include "tensorgrad/data/csv.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/data/images.h"
#include "tensorgrad/error.h"
#include "text.h"

namespace tensorgrad::cli {
namespace {

namespace fs = std::filesystem;

Samples pack_images(const Task& task, const std::vector<std::uint8_t>& bytes,
                    std::vector<std::int32_t> labels) {
  const auto pixels = static_cast<std::size_t>(task.features());
  const auto row = static_cast<std::size_t>(task.words()) * 4;
  Samples samples;
  samples.count = static_cast<std::int64_t>(bytes.size() / pixels);
  samples.words.resize(static_cast<std::size_t>(samples.count) * row / 4);
  samples.labels = std::move(labels);
  auto* to = reinterpret_cast<std::uint8_t*>(samples.words.data());
  for (std::size_t i = 0; i < bytes.size() / pixels; ++i) {
    std::memcpy(to + i * row, bytes.data() + i * pixels, pixels);
  }
  return samples;
}

// Returns the deviation, or 1 if it is 0: constant features are then 0 after standardization.
double usable_deviation(double variance) {
  const double deviation = std::sqrt(std::max(variance, 0.0));
  return deviation > 1e-12 ? deviation : 1.0;
}

void measure_images(Task& task, const std::vector<std::uint8_t>& bytes) {
  std::array<std::int64_t, 256> histogram = {};
  for (const std::uint8_t byte : bytes) ++histogram[byte];
  const auto count = static_cast<double>(bytes.size());
  double mean = 0;
  double variance = 0;
  for (std::size_t v = 0; v < 256; ++v) {
    mean += static_cast<double>(histogram[v]) / count * static_cast<double>(v) / 255;
  }
  for (std::size_t v = 0; v < 256; ++v) {
    const double off = static_cast<double>(v) / 255 - mean;
    variance += static_cast<double>(histogram[v]) / count * off * off;
  }
  task.mean = {mean};
  task.deviation = {usable_deviation(variance)};
}

void measure_table(Task& task, const CsvRows& rows) {
  const auto width = static_cast<std::size_t>(task.features());
  const auto count = static_cast<double>(rows.count);
  task.mean.assign(width, 0);
  task.deviation.assign(width, 0);
  for (std::size_t i = 0; i < rows.exact.size(); ++i) {
    task.mean[i % width] += rows.exact[i] / count;
  }
  for (std::size_t i = 0; i < rows.exact.size(); ++i) {
    const double off = rows.exact[i] - task.mean[i % width];
    task.deviation[i % width] += off * off / count;
  }
  for (double& deviation : task.deviation) deviation = usable_deviation(deviation);
}

Samples pack_table(const Task& task, CsvRows rows) {
  const auto width = static_cast<std::size_t>(task.features());
  for (std::size_t i = 0; i < rows.features.size(); ++i) {
    const std::size_t f = i % width;
    rows.features[i] = static_cast<float>((rows.exact[i] - task.mean[f]) / task.deviation[f]);
  }
  Samples samples;
  samples.count = rows.count;
  samples.features = std::move(rows.features);
  samples.labels = std::move(rows.labels);
  return samples;
}

ImageFolderOptions folder_options(const TrainSettings& settings) {
  return {.height = settings.height,
          .width = settings.width,
          .channels = settings.channels,
          .holdout = settings.holdout,
          .seed = settings.seed,
          .hint =
              "--size HEIGHTxWIDTH resizes all images, --channels 1 or 3 converts all to grayscale "
              "or RGB"};
}

TrainingData read_images(const std::string& path, const TrainSettings& settings) {
  LabeledImages images = read_image_folder(path, folder_options(settings));
  TrainingData data;
  data.skipped = images.skipped;
  Task& task = data.task;
  task.kind = Task::Kind::kImages;
  task.image_shape = images.image_shape;
  task.class_names = std::move(images.class_names);
  task.train_count = images.train.count;
  task.test_count = images.test.count;
  Fingerprint print;
  print.add(images.train.images.data(), images.train.images.size());
  print.add(images.train.labels.data(), images.train.labels.size() * sizeof(std::int32_t));
  task.fingerprint = print.text();
  measure_images(task, images.train.images);
  data.train = pack_images(task, images.train.images, std::move(images.train.labels));
  data.test = pack_images(task, images.test.images, std::move(images.test.labels));
  return data;
}

CsvOptions table_options(const TrainSettings& settings) {
  CsvOptions options;
  options.exact = true;
  options.max_expansion = settings.max_expansion;
  options.header = settings.header == "yes"  ? CsvOptions::Header::kYes
                   : settings.header == "no" ? CsvOptions::Header::kNo
                                             : CsvOptions::Header::kAuto;
  return options;
}

TrainingData read_table(const std::string& path, const TrainSettings& settings) {
  CsvOptions options = table_options(settings);
  options.label = settings.label;
  options.label_hint = settings.label.empty() ? "--label NAME selects the label column"
                                              : "--label NAME selects another column";
  options.holdout = settings.holdout;
  options.seed = settings.seed;
  CsvData csv = read_csv(path, options);
  if (csv.train.count == 0 || csv.test.count == 0) {
    throw IoError(fmt::format(
        "{}: of {} rows, a holdout of {:g} % leaves {} for training and {} for testing", path,
        csv.train.count + csv.test.count, settings.holdout * 100, csv.train.count, csv.test.count));
  }
  TrainingData data;
  Task& task = data.task;
  task.kind = Task::Kind::kTable;
  task.feature_names = std::move(csv.feature_names);
  task.had_header = csv.had_header;
  task.label_name = csv.label_name;
  task.class_names = std::move(csv.class_names);
  task.train_count = csv.train.count;
  task.test_count = csv.test.count;
  Fingerprint print;
  print.add(csv.train.features.data(), csv.train.features.size() * sizeof(float));
  print.add(csv.train.labels.data(), csv.train.labels.size() * sizeof(std::int32_t));
  task.fingerprint = print.text();
  measure_table(task, csv.train);
  data.train = pack_table(task, std::move(csv.train));
  data.test = pack_table(task, std::move(csv.test));
  return data;
}

void check_columns(const Task& task, const CsvData& csv, const std::string& path) {
  if (csv.feature_names.size() != task.feature_names.size()) {
    throw IoError(fmt::format("{}: {} feature columns; expected {}, as in the training data", path,
                              csv.feature_names.size(), task.feature_names.size()));
  }
  if (!csv.had_header || !task.had_header) return;
  for (std::size_t i = 0; i < csv.feature_names.size(); ++i) {
    if (csv.feature_names[i] == task.feature_names[i]) continue;
    throw IoError(fmt::format("{}: feature {} is '{}'; expected '{}', as in the training data",
                              path, i, csv.feature_names[i], task.feature_names[i]));
  }
}

// Returns the rows of a CSV file. All columns are features, except `label` if it is set.
CsvData read_features(const Run& run, const std::string& path, const std::string& label) {
  CsvOptions options;
  options.exact = true;
  options.max_expansion = run.settings.max_expansion;
  options.unlabeled = label.empty();
  options.label = label;
  CsvData csv = read_csv(path, options);
  check_columns(run.task, csv, path);
  return csv;
}

// Returns true if the file matches the model without its column `label`.
bool fits_without(const Run& run, const std::string& path, const std::string& label) {
  try {
    read_features(run, path, label);
    return true;
  } catch (const IoError&) {
    return false;
  }
}

void check_fingerprint(const Run& run, const Task& now) {
  if (now.fingerprint == run.task.fingerprint && now.features() == run.task.features()) return;
  throw IoError(run.data + ": the training data has changed since the run began");
}

// Returns the label column of the training data, as in CsvOptions::label.
std::string label_of(const Run& run) {
  return run.task.had_header ? run.task.label_name : run.settings.label;
}

CsvData read_rows(const Run& run, const std::string& path, const std::string& label) {
  try {
    return read_features(run, path, label);
  } catch (const IoError& error) {
    const std::string known = label_of(run).empty() ? "-1" : label_of(run);
    if (!label.empty() || !fits_without(run, path, known)) throw;
    throw IoError(error.message() + "; --label " + shell_word(known) + " ignores the label column");
  }
}

Samples read_test_folder(const Run& run, const std::string& path) {
  ImageFolderOptions options = folder_options(run.settings);
  options.class_names = run.task.class_names;
  options.holdout = 0;
  options.hint.clear();
  LabeledImages images = read_image_folder(path, options);
  if (images.test.count == 0) images.test = std::move(images.train);
  if (images.image_shape != run.task.image_shape) {
    throw IoError(fmt::format("{}: images are {}; expected {}, as in the training data", path,
                              to_string(images.image_shape), to_string(run.task.image_shape)));
  }
  for (const std::int32_t label : images.test.labels) {
    if (label < run.task.classes()) continue;
    throw IoError(
        fmt::format("{}: label {} in the test set is out of range; the model has {} classes", path,
                    label, run.task.classes()));
  }
  return pack_images(run.task, images.test.images, std::move(images.test.labels));
}

std::vector<std::uint8_t> read_picture(const Run& run, std::span<const std::byte> file,
                                       const std::string& path) {
  const TrainSettings& settings = run.settings;
  if (settings.channels == 0) {
    throw IoError(
        fmt::format("{}: not an IDX file; PNG and JPEG images do not fit the model's images of {}",
                    path, to_string(run.task.image_shape)));
  }
  return read_image(
             {file, path},
             {.height = settings.height, .width = settings.width, .channels = settings.channels})
      .pixels;
}

}  // namespace

const std::uint8_t* Samples::image(const Task& task, std::int64_t index) const {
  return reinterpret_cast<const std::uint8_t*>(words.data() + index * task.words());
}

TrainingData read_training_data(const std::string& path, const TrainSettings& settings) {
  std::error_code ignored;
  const fs::path file = os::utf8_path(path);
  if (!fs::exists(file, ignored)) throw IoError(path + ": no such file or directory");
  return fs::is_directory(file, ignored) ? read_images(path, settings) : read_table(path, settings);
}

Samples read_test_data(const Run& run, const std::string& path) {
  if (path.empty()) {
    TrainingData data = read_training_data(run.data, run.settings);
    check_fingerprint(run, data.task);
    return std::move(data.test);
  }
  if (run.task.kind == Task::Kind::kImages) return read_test_folder(run, path);
  CsvOptions options;
  options.exact = true;
  options.max_expansion = run.settings.max_expansion;
  options.label = label_of(run);
  options.class_names = run.task.class_names;
  CsvData csv = read_csv(path, options);
  check_columns(run.task, csv, path);
  return pack_table(run.task, std::move(csv.train));
}

Samples read_unlabeled(const Run& run, const std::string& path, const std::string& label) {
  const Task& task = run.task;
  if (task.kind == Task::Kind::kTable) {
    CsvData csv = read_rows(run, path, label);
    csv.train.labels.clear();
    return pack_table(task, std::move(csv.train));
  }
  const std::vector<std::byte> file = read_file(path);
  // IDX begins with zeros, gzipped IDX with 0x1f.
  if (file.empty() || (file[0] != std::byte{0} && file[0] != std::byte{0x1f})) {
    return pack_images(task, read_picture(run, file, path), {});
  }
  const IdxArray array = read_idx({file, path});
  Shape each = array.shape;
  if (each != task.image_shape) each.erase(each.begin());
  if (array.element != IdxElement::kU8 || each != task.image_shape) {
    throw IoError(fmt::format("{}: contains {} {}; expected u8 images of {}", path,
                              to_string(array.element), to_string(array.shape),
                              to_string(task.image_shape)));
  }
  std::vector<std::uint8_t> bytes(array.bytes.size());
  std::memcpy(bytes.data(), array.bytes.data(), bytes.size());
  return pack_images(task, bytes, {});
}

}  // namespace tensorgrad::cli
