// SPDX-License-Identifier: MIT
// tg train: the training loop, the run folder and resuming. The metrics are written before the
// model. Metrics of steps after the saved model are dropped when the run is resumed. Of several
// ranks, the first one trains a run as one process does, and orders the others to do their part.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "classify/classifier.h"
#include "classify/evaluation.h"
#include "classify/fingerprint.h"
#include "commands.h"
#include "os/process.h"
#include "plot/plots.h"
#include "run/interrupt.h"
#include "run/metrics.h"
#include "run/progress.h"
#include "run/ranks.h"
#include "run/run_folder.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"
#include "text.h"
#include "ui/live_run.h"
#include "ui/view.h"

namespace tensorgrad::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kChunkSeconds = 0.1;
constexpr int kLargestChunk = 2048;  // the trainer keeps the last 4096 losses
constexpr std::int64_t kLinesPerEpoch = 50;
constexpr int kProfiledSteps = 5;
constexpr std::int64_t kLiveImages = 40;
constexpr std::int64_t kLiveBytes = 1 << 20;  // of the images together

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the name of a table's label column, and how to select another one.
std::string label_text(const Run& run) {
  if (run.task.kind != Task::Kind::kTable) return "";
  const char* const reason =
      run.settings.label.empty() ? ", the last one (--label selects another)" : "";
  return fmt::format(" in column '{}'{}", printable(run.task.label_name), reason);
}

std::string skipped_text(const TrainingData& data) {
  if (data.skipped == 0) return "";
  return data.skipped == 1 ? "; skipped 1 file that is not an image"
                           : fmt::format("; skipped {} files that are not images", data.skipped);
}

void print_head(const Run& run, const NetTrainer& trainer, const TrainingData& data,
                const std::string& folder, const Ranks& ranks) {
  const CompileReport report = trainer.report();
  const Task& task = run.task;
  fmt::print("device  {}\n", trainer.device());
  fmt::print("{}", ranks_text(ranks, run.settings.batch, task.unit()));
  fmt::print(
      "model   {}: {} parameters, {} launches per step, {} peak memory, compiled in {:.0f} ms\n",
      model_text(run), parameter_count(run), report.launches, bytes_text(report.peak_bytes),
      report.milliseconds);
  fmt::print("{}", rank_memory_text(ranks, report));
  fmt::print("data    {}: {} {} for training, {} for testing, {} classes{}{}\n",
             printable(run.data), task.train_count, task.unit(), task.test_count, task.classes(),
             label_text(run), skipped_text(data));
  if (task.kind == Task::Kind::kTable)
    fmt::print("header  {}\n", task.had_header ? "line 1" : "none, line 1 is data");
  fmt::print("run     {}\n", printable(folder));
  std::fflush(stdout);
}

ProgressOptions progress_options(const char* unit, const Ranks& ranks, LiveRun* live) {
  ProgressOptions options;
  options.stream = stdout;
  options.unit = unit;
  // mpirun may pass on the lines of a terminal that nobody sees.
  if (ranks.several()) options.terminal = false;
  if (live != nullptr) options.take_line = live->line_taker();
  return options;
}

// Carries out the orders of rank 0 until the run ends. Returns the exit code.
int follow(const Run& run, NetTrainer& trainer, const TrainingData& data, const Ranks& ranks) {
  Predictor predictor(trainer, run, data.test.count);
  for (;;) {
    const GivenOrder given = ranks.next_order();
    if (given.order == Order::kEnd) return static_cast<int>(given.number);
    if (given.order == Order::kTrain) {
      trainer.run(static_cast<int>(given.number));
      continue;
    }
    if (given.order == Order::kSave) {
      trainer.save(name_of(RunFile::kModel));  // rank 0 writes the file
      continue;
    }
    if (given.order == Order::kParams) {
      (void)trainer.download_params();
      continue;
    }
    try {
      predictor.log_probabilities(data.test, ranks);
    } catch (const Interrupted&) {  // rank 0 ends the run
    }
  }
}

// Returns the number of test images that a live view shows.
std::int64_t live_images(const Run& run, const TrainingData& data) {
  if (!drawable_images(run.task)) return 0;
  const std::int64_t fitting = std::max<std::int64_t>(1, kLiveBytes / run.task.features());
  return std::min({data.test.count, kLiveImages, fitting});
}

// Trains a run from the state of its trainer to its end, or until a signal. Used on rank 0 only.
class Training {
 public:
  Training(const Run& run, std::string folder, NetTrainer& trainer, const TrainingData& data,
           History history, const TrainArguments& arguments, LiveRun* live, Ranks& ranks)
      : run_(run),
        ranks_(ranks),
        folder_(std::move(folder)),
        trainer_(trainer),
        data_(data),
        schedule_(schedule_of(run)),
        history_(std::move(history)),
        predictor_(trainer, run, data.test.count),
        metrics_(path(RunFile::kMetrics), LineLog::Open::kAppend),
        last_step_(arguments.stop_after > 0 ? std::min(arguments.stop_after, run.total_steps())
                                            : run.total_steps()),
        checkpoint_seconds_(arguments.checkpoint_seconds),
        progress_(run.total_steps() * run.settings.batch, run.settings.epochs,
                  progress_options(run.task.unit(), ranks, live)),
        live_(live) {
    if (!history_.epochs.empty()) seconds_ = epoch_began_ = history_.epochs.back().seconds;
    if (history_.pause.step > 0) {
      loss_sum_ = history_.pause.loss_sum;
      seconds_ = history_.pause.seconds;
    }
    saved_step_ = trainer.steps();
    if (arguments.tensorboard || (!arguments.resume.empty() && has_event_files(folder_)))
      metrics_.write_events(folder_, history_, trainer.steps(), true);
    if (live_ == nullptr) return;
    metrics_.show_on(*live_);
    live_->saved(saved_step_);
    show_progress();
  }

  int go() {
    return live_ == nullptr ? train() : live_->watch([this] { return train(); });
  }

 private:
  int train() {
    try {
      const std::int64_t per_epoch = run_.steps_per_epoch();
      if (epoch_is_open()) end_epoch();
      while (trainer_.steps() < last_step_ && interrupted() == 0) {
        if (live_ != nullptr) {
          live_->between_steps(
              progress_, [this] { checkpoint(); }, [this] { ranks_.keep_waiting(); });
        }
        if (interrupted() != 0) break;
        chunk(std::min(per_epoch - trainer_.steps() % per_epoch, last_step_ - trainer_.steps()));
        if (trainer_.steps() % per_epoch == 0) {
          end_epoch();
        } else if (now() - saved_at_ >= checkpoint_seconds_) {
          checkpoint();
        }
      }
      if (trainer_.steps() == run_.total_steps()) return complete();
    } catch (const Interrupted&) {  // in a test; a resumed run does it again
    }
    return stop();
  }

  [[nodiscard]] std::string path(RunFile file) const { return run_path(folder_, file); }
  // Returns true if the last epoch lacks its test, because a signal ended it.
  [[nodiscard]] bool epoch_is_open() const {
    const std::int64_t step = trainer_.steps();
    return step > 0 && step % run_.steps_per_epoch() == 0 &&
           (history_.epochs.empty() || history_.epochs.back().step != step);
  }
  // Returns the epoch of a step; both count from 1.
  [[nodiscard]] int epoch_of(std::int64_t step) const {
    return static_cast<int>((step - 1) / run_.steps_per_epoch()) + 1;
  }

  // Runs as many steps as take about kChunkSeconds, at most `left`.
  void chunk(std::int64_t left) {
    const int count = static_cast<int>(std::min<std::int64_t>(chunk_, left));
    const std::int64_t before = trainer_.steps();
    const double began = now();
    const std::vector<float> losses = ranks_.lead(Order::kTrain, count, [&] {
      return live_ != nullptr && live_->take_profile() ? profiled_steps(count)
                                                       : trainer_.run(count);
    });
    const double took = now() - began;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const std::int64_t step = before + static_cast<std::int64_t>(i) + 1;
      const double share = static_cast<double>(i + 1) / static_cast<double>(losses.size());
      take_loss(step, losses[i], seconds_ + took * share);
    }
    seconds_ += took;
    const double fitting = count * kChunkSeconds / std::max(took, 1e-6);
    chunk_ =
        static_cast<int>(std::clamp(fitting, 1.0, std::min(chunk_ * 4.0, 1.0 * kLargestChunk)));
    const std::int64_t done = trainer_.steps();
    progress_.update(epoch_of(done), done * run_.settings.batch, shown_loss_.value());
    if (live_ != nullptr) show_progress();
  }

  // Runs steps as trainer_.run(), at most kProfiledSteps, and shows the cost of their launches.
  std::vector<float> profiled_steps(int most) {
    live_->profiled(trainer_.profile({}, {.steps = std::min(most, kProfiledSteps)}));
    return trainer_.losses();
  }

  void show_progress() {
    const std::int64_t done = trainer_.steps();
    live_->progress(progress_.state(), done, schedule_.at(std::min(done, run_.total_steps() - 1)),
                    seconds_);
  }

  void take_loss(std::int64_t step, float loss, double seconds) {
    if (!std::isfinite(loss)) fail_not_finite(fmt::format("the loss is {} at step {}", loss, step));
    loss_sum_ += loss;
    shown_loss_.take(step, loss);
    const std::int64_t every = std::max<std::int64_t>(1, run_.steps_per_epoch() / kLinesPerEpoch);
    if (step % every != 0) return;
    metrics_.write(StepLine{step, epoch_of(step), loss, schedule_.at(step - 1), seconds});
  }

  [[noreturn]] void fail_not_finite(const std::string& what) {
    progress_.finish();
    throw UserError(fmt::format("{}; {} holds the last good model, of step {}; try a smaller --lr",
                                what, path(RunFile::kModel), saved_step_));
  }

  // Replaces the saved model. Throws UserError if a parameter is not finite; the file is then kept.
  void save() {
    const NamedTensors params =
        ranks_.lead_with_params(Order::kParams, [&] { return trainer_.download_params(); });
    for (const auto& [name, tensor] : params) {
      const std::vector<float> values = tensor.floats();
      if (std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
        continue;
      }
      fail_not_finite(fmt::format("parameter {} contains NaN or infinity after step {}", name,
                                  trainer_.steps()));
    }
    metrics_.sync();
    ranks_.lead_save([&] { trainer_.save(path(RunFile::kModel)); });
    saved_step_ = trainer_.steps();
    saved_at_ = now();
    if (live_ != nullptr) live_->saved(saved_step_);
  }

  // Saves the model within an epoch.
  void checkpoint() {
    const std::int64_t step = trainer_.steps();
    if (step == saved_step_) return;
    metrics_.write(PauseLine{step, epoch_of(step), loss_sum_, seconds_});
    save();
  }

  // Throws Interrupted if a signal is caught.
  void test() {
    const std::vector<float> values = ranks_.lead(
        Order::kTest, 0, [&] { return predictor_.log_probabilities(data_.test, ranks_); });
    evaluation_ = evaluate(values, data_.test.labels, run_.task.classes());
  }

  void end_epoch() {
    progress_.pause();
    if (live_ != nullptr) live_->busy("testing");
    test();
    const std::int64_t step = trainer_.steps();
    const int epoch = epoch_of(step);
    const auto steps = static_cast<double>(run_.steps_per_epoch());
    const double rate =
        steps * static_cast<double>(run_.settings.batch) / std::max(seconds_ - epoch_began_, 1e-9);
    const EpochLine line{
        step, epoch, loss_sum_ / steps, evaluation_->loss, evaluation_->accuracy(), rate, seconds_};
    metrics_.write(line);
    save();
    progress_.print(fmt::format(
        "epoch {}/{}  loss {:.4f}  test loss {:.4f}  test accuracy {:.2f} %  {} {}/s  {:.1f} s",
        epoch, run_.settings.epochs, line.train_loss, line.test_loss, line.test_accuracy * 100,
        short_count(rate), run_.task.unit(), seconds_));
    loss_sum_ = 0;
    epoch_began_ = seconds_;
    progress_.resume();
    if (live_ == nullptr) return;
    live_->busy("");
    if (const std::int64_t count = live_images(run_, data_); count > 0) show_predictions(count);
  }

  void show_predictions(std::int64_t count) {
    std::vector<RunPrediction> predictions;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const auto name = [&](std::int32_t c) {
        return run_.task.class_names[static_cast<std::size_t>(c)];
      };
      predictions.push_back({.predicted = name(evaluation_->predicted[i]),
                             .actual = name(data_.test.labels[i]),
                             .probability = evaluation_->probability[i]});
    }
    live_->predictions(std::move(predictions));
  }

  int stop() {
    progress_.finish();
    checkpoint();
    const std::string text =
        fmt::format("stopped after step {} of {}; saved; resume with: tg train --resume {}",
                    trainer_.steps(), run_.total_steps(), shell_word(folder_));
    progress_.print(text);
    if (live_ != nullptr) live_->end("stopped", text);
    return interrupted_status();
  }

  int complete() {
    progress_.finish();
    if (!evaluation_) test();
    metrics_.close();
    const History history = rewind_metrics(path(RunFile::kMetrics), trainer_.steps(), true);
    const std::vector<std::string> pictures =
        write_pictures(folder_, run_, history, data_.test, *evaluation_);
    const std::string result = fmt::format("test accuracy {:.2f} % after {:.1f} s of training",
                                           evaluation_->accuracy() * 100, seconds_);
    if (live_ != nullptr) live_->end("done", result);
    fmt::print("{}\n", result);
    std::string files = "model.safetensors, metrics.jsonl, run.json";
    for (const std::string& name : pictures) files += ", " + name;
    fmt::print("{}: {}\n", printable(folder_), files);
    std::fflush(stdout);
    return 0;
  }

  const Run& run_;
  Ranks& ranks_;
  std::string folder_;
  NetTrainer& trainer_;
  const TrainingData& data_;
  Schedule schedule_;
  History history_;
  Predictor predictor_;
  Metrics metrics_;
  std::int64_t last_step_;
  double checkpoint_seconds_;
  double saved_at_ = now();
  Progress progress_;
  std::optional<Evaluation> evaluation_;
  ShownLoss shown_loss_;
  int chunk_ = 1;
  double seconds_ = 0;      // training time, without evaluation
  double epoch_began_ = 0;  // start of this epoch, in training time
  double loss_sum_ = 0;     // over the steps of this epoch
  std::int64_t saved_step_ = 0;
  LiveRun* live_;  // null if there is none
};

RunHead run_head(const Run& run, const NetTrainer& trainer, const TrainingData& data,
                 const std::string& folder, const Ranks& ranks) {
  const CompileReport report = trainer.report();
  RunHead head = {.tool = "tg train",
                  .folder = folder,
                  .device = trainer.device(),
                  .model = fmt::format("{}: {} parameters", model_text(run), parameter_count(run)),
                  .data = fmt::format("{}: {} {} for training, {} for testing, {} classes",
                                      run.data, run.task.train_count, run.task.unit(),
                                      run.task.test_count, run.task.classes()),
                  .unit = run.task.unit(),
                  .held_out = "test",
                  .loss_unit = "",
                  .units_per_step = run.settings.batch,
                  .steps = run.total_steps(),
                  .epochs = run.settings.epochs,
                  .launches = report.launches,
                  .peak_bytes = report.peak_bytes,
                  .profiles = !ranks.several()};
  const std::int64_t count = live_images(run, data);
  if (count == 0) return head;
  const Shape& shape = run.task.image_shape;
  head.height = shape[0];
  head.width = shape[1];
  head.channels = shape.size() == 3 ? shape[2] : 1;
  for (std::int64_t i = 0; i < count; ++i) {
    head.pixels.append(reinterpret_cast<const char*>(data.test.image(run.task, i)),
                       static_cast<std::size_t>(run.task.features()));
  }
  return head;
}

// Throws on all ranks if their settings or their data differ.
void check_same_run(const Run& run, const Samples& test, const Ranks& ranks) {
  if (!ranks.several()) return;
  std::vector<SharedText> shared = shared_settings(run_json(run));
  Fingerprint print;
  print.add(test.words.data(), test.words.size() * sizeof(std::uint32_t));
  print.add(test.features.data(), test.features.size() * sizeof(float));
  print.add(test.labels.data(), test.labels.size() * sizeof(std::int32_t));
  shared.push_back({"fingerprint of the test data", print.text()});
  ranks.check_same(shared);
}

std::string absolute_path(const std::string& path) {
  return os::utf8_text(fs::absolute(os::utf8_path(path)).lexically_normal());
}

int start(const TrainArguments& arguments, Ranks& ranks) {
  std::unique_ptr<LiveRun> live;
  Run run;
  TrainingData data;
  ranks.together([&] {
    if (ranks.first()) live = open_view(arguments.ui, ranks);
    run.data = absolute_path(arguments.data);
    run.settings = arguments.settings;
    data = read_training_data(run.data, run.settings);
    run.task = data.task;
    settle_batch(run);
    (void)batch_per_rank(run.settings.batch, ranks);
  });
  check_same_run(run, data.test, ranks);
  const DeviceOptions device = device_of_rank(ranks, arguments.device);
  std::string folder;
  std::optional<NewRunFolder> made;
  ranks.on_first([&] {
    folder = arguments.out.empty() ? free_run_name(run.data) : arguments.out;
    made.emplace(folder, arguments.force);
  });
  NetTrainer trainer = compile_training(run, device, ranks);
  run.device = device_text(trainer.device());
  upload(trainer, run.task, data.train);
  catch_interrupts();
  ranks.together([&] { trainer.save(path_in(made, RunFile::kModel)); });
  ranks.on_first([&] {
    write_file_atomically(made->path(RunFile::kMetrics), std::string_view());
    write_file_atomically(made->path(RunFile::kRun), run_json(run));
    made->publish();
    print_head(run, trainer, data, folder, ranks);
    if (live) live->open(run_head(run, trainer, data, folder, ranks));
  });
  if (!ranks.first()) return follow(run, trainer, data, ranks);
  return ranks.lead_run(
      [&] { return Training(run, folder, trainer, data, {}, arguments, live.get(), ranks).go(); });
}

int resume(const TrainArguments& arguments, Ranks& ranks) {
  std::unique_ptr<LiveRun> live;
  const std::string& folder = arguments.resume;
  std::optional<FileLock> lock;
  ranks.on_first([&] {
    live = open_view(arguments.ui, ranks);
    lock.emplace(lock_run(folder));
  });
  Run run;
  TrainingData data;
  ranks.together([&] {
    run = read_run(folder);
    if (!arguments.data.empty()) run.data = absolute_path(arguments.data);
    data = read_training_data(run.data, run.settings);
    if (data.task.fingerprint != run.task.fingerprint || data.task.mean != run.task.mean ||
        data.task.class_names.size() != run.task.class_names.size() ||
        data.task.train_count != run.task.train_count ||
        data.task.features() != run.task.features()) {
      throw IoError(run.data + ": the training data differs from that of the run; cannot resume");
    }
    (void)batch_per_rank(run.settings.batch, ranks);
  });
  check_same_run(run, data.test, ranks);
  NetTrainer trainer = compile_training(run, device_of_rank(ranks, arguments.device), ranks);
  upload(trainer, run.task, data.train);
  ranks.together([&] {
    trainer.load(run_path(folder, RunFile::kModel));
    if (trainer.steps() > run.total_steps()) {
      throw IoError(fmt::format("{}: the model has {} steps; expected at most {}", folder,
                                trainer.steps(), run.total_steps()));
    }
  });
  catch_interrupts();
  History history;
  ranks.on_first([&] {
    history = rewind_metrics(run_path(folder, RunFile::kMetrics), trainer.steps());
    print_head(run, trainer, data, folder, ranks);
    fmt::print("resuming after step {} of {}\n", trainer.steps(), run.total_steps());
    print_dropped(history, trainer.steps());
    if (live) live->open(run_head(run, trainer, data, folder, ranks));
  });
  if (!ranks.first()) return follow(run, trainer, data, ranks);
  return ranks.lead_run([&] {
    return Training(run, folder, trainer, data, std::move(history), arguments, live.get(), ranks)
        .go();
  });
}

}  // namespace

int train(const TrainArguments& arguments) {
  const bool resumes = !arguments.resume.empty();
  Ranks ranks = join_ranks(arguments.ranks, resumes ? "tg train --resume" : "tg train");
  return run_rank(ranks,
                  [&] { return resumes ? resume(arguments, ranks) : start(arguments, ranks); });
}

}  // namespace tensorgrad::cli
