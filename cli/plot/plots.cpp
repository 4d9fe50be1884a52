// SPDX-License-Identifier: MIT
// Plots the history and the evaluation of a run.
#include "plot/plots.h"

#include <algorithm>
#include <filesystem>

#include "os/process.h"
#include "plot/image_sheet.h"
#include "plot/svg_plot.h"
#include "run/run_folder.h"
#include "tensorgrad/data/files.h"

namespace tensorgrad::cli {
namespace {

constexpr std::int64_t kSheetImages = 40;
constexpr std::int64_t kLargestSide = 512;  // pixels; no sheet if images are larger

std::string title_of(const Run& run) {
  std::filesystem::path data = os::utf8_path(run.data);
  if (!data.has_filename()) data = data.parent_path();
  return os::utf8_text(data.filename());
}

std::string curves(const Run& run, const History& history) {
  const auto per_epoch = static_cast<double>(run.steps_per_epoch());
  Curve training{.name = "training", .x = {}, .y = {}, .smooth = true};
  Curve testing{.name = "test", .x = {}, .y = {}, .marks = true};
  Curve accuracy{.name = "test", .x = {}, .y = {}, .marks = true};
  for (const StepLine& line : history.steps) {
    training.x.push_back(static_cast<double>(line.step) / per_epoch);
    training.y.push_back(line.loss);
  }
  for (const EpochLine& line : history.epochs) {
    const double epoch = static_cast<double>(line.step) / per_epoch;
    testing.x.push_back(epoch);
    testing.y.push_back(line.test_loss);
    accuracy.x.push_back(epoch);
    accuracy.y.push_back(line.test_accuracy);
  }
  return curves_svg(
      title_of(run),
      {{.title = "loss", .x_label = "epoch", .curves = {training, testing}},
       {.title = "accuracy", .x_label = "epoch", .curves = {accuracy}, .percent = true}});
}

ImageSheet sheet(const Run& run, const Samples& test, const Evaluation& evaluation) {
  const Task& task = run.task;
  ImageSheet sheet;
  sheet.title = title_of(run) + ": predictions on test images";
  sheet.height = static_cast<int>(task.image_shape[0]);
  sheet.width = static_cast<int>(task.image_shape[1]);
  sheet.channels = task.image_shape.size() == 3 ? static_cast<int>(task.image_shape[2]) : 1;
  const std::int64_t count = std::min(test.count, kSheetImages);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto name = [&](std::int32_t c) { return task.class_names[static_cast<std::size_t>(c)]; };
    sheet.images.push_back(
        {.pixels = {test.image(task, i), static_cast<std::size_t>(task.features())},
         .predicted = name(evaluation.predicted[at]),
         .actual = name(test.labels[at]),
         .probability = evaluation.probability[at]});
  }
  return sheet;
}

}  // namespace

bool drawable_images(const Task& task) {
  if (task.kind != Task::Kind::kImages || task.image_shape.size() > 3) return false;
  if (task.image_shape.size() < 2) return false;
  const bool channels =
      task.image_shape.size() == 2 || task.image_shape[2] == 3 || task.image_shape[2] == 1;
  return channels && std::max(task.image_shape[0], task.image_shape[1]) <= kLargestSide;
}

std::vector<std::string> write_pictures(const std::string& folder, const Run& run,
                                        const History& history, const Samples& test,
                                        const Evaluation& evaluation) {
  const auto path = [&](RunFile file) { return run_path(folder, file); };
  std::vector<std::string> written = {name_of(RunFile::kCurves)};
  write_file_atomically(path(RunFile::kCurves), curves(run, history));
  if (evaluation.confusion) {
    write_file_atomically(path(RunFile::kConfusion),
                          confusion_svg({.title = title_of(run),
                                         .class_names = run.task.class_names,
                                         .counts = evaluation.confusion->counts()}));
    written.emplace_back(name_of(RunFile::kConfusion));
  }
  if (drawable_images(run.task)) {
    write_sheet(path(RunFile::kPredictions), sheet(run, test, evaluation));
    written.emplace_back(name_of(RunFile::kPredictions));
  }
  return written;
}

}  // namespace tensorgrad::cli
