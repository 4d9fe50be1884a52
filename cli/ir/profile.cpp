// SPDX-License-Identifier: MIT
// tg profile: the cost of each launch of a training step, as a table, HTML page and trace events.
#include <algorithm>
#include <chrono>
#include <fstream>

#include <fmt/format.h>

#include "classify/classifier.h"
#include "commands.h"
#include "os/process.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

constexpr int kWarmUp = 3;

// Returns synthetic samples, as many as in the training set. The cost of a launch does not depend
// on the values, and the data of the run may no longer exist.
Samples made_up(const Task& task) {
  Samples samples;
  samples.count = task.train_count;
  const auto count = static_cast<std::size_t>(samples.count);
  if (task.kind == Task::Kind::kTable) {
    samples.features.resize(count * static_cast<std::size_t>(task.features()));
    for (std::size_t i = 0; i < samples.features.size(); ++i)
      samples.features[i] = static_cast<float>(i % 17) / 8 - 1;
  } else {
    samples.words.resize(count * static_cast<std::size_t>(task.words()));
    std::uint32_t word = 1;
    for (std::uint32_t& each : samples.words) each = word = word * 1664525U + 1013904223U;
  }
  samples.labels.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    samples.labels[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(task.classes()));
  return samples;
}

// Returns the median microseconds of a step. Runs `steps` steps per call, as training does.
double step_microseconds(NetTrainer& trainer, int steps) {
  using Clock = std::chrono::steady_clock;
  constexpr int kTimes = 5;
  std::vector<double> times;
  for (int i = 0; i < kTimes; ++i) {
    const Clock::time_point start = Clock::now();
    trainer.run(steps);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
                    steps);
  }
  std::nth_element(times.begin(), times.begin() + kTimes / 2, times.end());
  return times[kTimes / 2];
}

void write_text(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  std::ofstream out(os::utf8_path(path), std::ios::binary);
  out << text;
  out.close();
  if (!out) throw IoError(path + ": cannot be written");
  fmt::print("wrote     {}\n", path);
}

}  // namespace

int profile(const ProfileArguments& arguments) {
  const Run run = described_run(arguments.model);
  NetTrainer trainer = compile_training(run, arguments.model.device);
  upload(trainer, run.task, made_up(run.task));
  trainer.run(kWarmUp);
  const double step = step_microseconds(trainer, arguments.steps);
  const Profile profile =
      trainer.profile({}, {.steps = arguments.steps, .roofline = arguments.roofline});
  fmt::print(
      "device    {}\nmodel     {}: {} parameters, batch {}; synthetic data\n"
      "step      {:.1f} us (median, {} steps per call); sum of its launches {:.1f} us ({}, medians "
      "of {} steps)\n\n{}",
      profile.device, model_text(run), parameter_count(run), run.settings.batch, step,
      arguments.steps, profile.microseconds(), profile.clock, profile.steps, profile.table());
  write_text(arguments.html, profile.html(fmt::format("tg profile: {}, batch {}", model_text(run),
                                                      run.settings.batch)));
  write_text(arguments.trace, profile.trace_events());
  return 0;
}

}  // namespace tensorgrad::cli
