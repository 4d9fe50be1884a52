// SPDX-License-Identifier: MIT
// A run as its live views show it: the figures, and the requests of buttons and keys. The training
// loop writes the figures between its steps. The thread of a view takes snapshots of them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "run/progress.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::cli {

// What does not change during a run.
struct RunHead {
  std::string tool;    // "tg train"
  std::string folder;  // of the run
  std::string device, model, data;
  std::string unit;       // of the throughput: "images", "tokens"
  std::string held_out;   // name of the held-out data: "test", "validation"; empty: there is none
  std::string loss_unit;  // "nats per token"; may be empty
  std::int64_t units_per_step = 1;
  std::int64_t steps = 0;       // of the whole run
  int epochs = 0;               // 0 if the run has none
  int launches = 0;             // per step
  std::int64_t peak_bytes = 0;  // of the memory plan
  bool profiles = false;        // whether the launches of a step can be timed
  // Images of the held-out data, [count, height, width, channels]; empty: there are none.
  std::string pixels = {};
  std::int64_t height = 0, width = 0, channels = 0;
};

struct RunPrediction {
  std::string predicted, actual;  // classes
  double probability = 0;         // of the predicted one
};

// A line of metrics.jsonl.
struct RunLine {
  std::string kind, json;
};

// What changes with each step.
struct RunNow {
  std::int64_t step = 0, epoch = 0, saved = 0;
  double loss = 0, lr = 0, rate = 0, left = -1, seconds = 0;
  std::string activity;  // "", "testing", "validating", "saving", "paused"
  std::string how, why;  // of the end
  bool pausing = false, stopping = false;
  std::int64_t profiles = 0, pictures = 0;  // number of profiles and predictions so far
};

struct RunSnapshot {
  std::int64_t version = 0, next = 0;  // to pass to the next call of snapshot()
  bool whole = false;                  // whether `lines` are all lines, not only new ones
  std::vector<RunLine> lines;
  RunNow now;
  std::shared_ptr<const RunHead> head;
  // Null if there are none yet.
  std::shared_ptr<const Profile> profile;
  std::shared_ptr<const std::vector<RunPrediction>> predictions;
};

// What a button or key asks for.
enum class RunRequest { kPause, kResume, kSave, kStop, kProfile };

class LiveRun {
 public:
  // `presser` is where requests come from, for messages: "the page".
  explicit LiveRun(std::string presser) : presser_(std::move(presser)) {}
  virtual ~LiveRun() = default;
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;

  // Starts to show the run.
  void open(RunHead head);

  // The following are called by the training loop.

  // Adds a line of metrics.jsonl. Only kinds that a view shows are kept. If there are too many,
  // drops every second one.
  void add_line(std::string_view kind, std::string json);
  // Sets the progress after `step` steps.
  void progress(const ProgressState& state, std::int64_t step, double lr, double seconds);
  // Shows an activity other than training, such as "testing"; empty: training.
  void busy(std::string_view activity);
  // Shows that the run was saved after `step` steps.
  void saved(std::int64_t step);
  // Shows predictions, for the images of the head if it has any.
  void predictions(std::vector<RunPrediction> predictions);
  // Shows the cost of each launch.
  void profiled(Profile profile);
  // Returns true once after a profile was requested.
  [[nodiscard]] bool take_profile();
  // Handles requests between two steps: calls `save`, and waits while the run is paused, until it
  // is resumed or interrupted. Meanwhile, calls `waiting` often.
  void between_steps(Progress& progress, const std::function<void()>& save,
                     const std::function<void()>& waiting);
  // Returns what `train` returns. What it throws is shown as the end of the run.
  int watch(const std::function<int()>& train);
  // Shows how the run ended: "done", "stopped" or "failed", and why. Called before the results are
  // printed.
  void end(std::string_view how, std::string_view why);
  // Returns where Progress is to print its lines; empty: to its stream.
  [[nodiscard]] virtual std::function<void(std::string_view)> line_taker() { return {}; }

 protected:
  // Returns the state for a view that has seen the lines before `since` of this version. Both are 0
  // at first.
  [[nodiscard]] RunSnapshot snapshot(std::int64_t version, std::int64_t since) const;
  [[nodiscard]] std::shared_ptr<const RunHead> head() const;
  void request(RunRequest request);

 private:
  using Lock = std::unique_lock<std::mutex>;

  virtual void show() = 0;    // called by open()
  virtual void show_end() {}  // called by end()
  void thin();                // requires the lock

  std::string presser_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const RunHead> head_ = std::make_shared<RunHead>();
  std::vector<RunLine> lines_;
  std::int64_t version_ = 1;  // changes if lines are dropped
  RunNow now_;
  std::shared_ptr<const Profile> profile_;
  std::shared_ptr<const std::vector<RunPrediction>> predictions_;
  bool save_ = false, measure_ = false;  // requests, as `pausing` and `stopping` of now_
};

}  // namespace tensorgrad::cli
