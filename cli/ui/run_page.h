// SPDX-License-Identifier: MIT
// The live page of a run: what it shows, and the requests of its buttons. The training loop writes
// the state between its steps; the thread of the server only reads it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/http_server.h"
#include "run/progress.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::cli {

// What does not change during a run.
struct PageHead {
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

struct PagePrediction {
  std::string predicted, actual;  // classes
  double probability = 0;         // of the predicted one
};

class RunPage {
 public:
  // Opens the port, before anything of the run is done. Throws UserError as HttpServer().
  explicit RunPage(int port);
  // Returns a page on the port, or null if there is no port.
  static std::unique_ptr<RunPage> on_port(std::optional<int> port);
  // Lets a page that is open fetch the end of the run, for at most kLastPoll.
  ~RunPage();
  RunPage(const RunPage&) = delete;
  RunPage& operator=(const RunPage&) = delete;

  // Starts to serve, and prints the address with its token.
  void open(PageHead head);

  // The following are called by the training loop.

  // Adds a line of metrics.jsonl. Only kinds that the page shows are kept. Of a long run every
  // second line is dropped from time to time.
  void add_line(std::string_view kind, std::string json);
  // Sets the progress after `step` steps.
  void progress(const ProgressState& state, std::int64_t step, double lr, double seconds);
  // Shows that the loop does something else than steps, such as "testing"; empty: steps.
  void busy(std::string_view activity);
  // Shows that the run was saved after `step` steps.
  void saved(std::int64_t step);
  // Shows the predictions of the images of the head.
  void predictions(const std::vector<PagePrediction>& predictions);
  // Shows the cost of each launch.
  void profiled(const Profile& profile);
  // Returns true once after the launches of a step are to be timed.
  [[nodiscard]] bool take_profile();
  // Does what the buttons ask for between two steps: calls `save`, and waits while the run is
  // paused, until it is resumed or an interrupt is caught. Calls `waiting` often meanwhile.
  void between_steps(Progress& progress, const std::function<void()>& save,
                     const std::function<void()>& waiting);
  // Returns what `train` returns. What it throws is shown as the end of the run.
  int watch(const std::function<int()>& train);
  // Shows how the run ended: "done", "stopped" or "failed", and why.
  void end(std::string_view how, std::string_view why);

 private:
  using Lock = std::unique_lock<std::mutex>;

  HttpResponse answer(const HttpRequest& request);
  HttpResponse press(const std::string& button);
  std::string state(const HttpRequest& request) const;  // requires the lock
  void thin();                                          // requires the lock

  struct Line {
    bool step;
    std::string json;
  };
  struct Now {
    std::int64_t step = 0, epoch = 0, saved = 0;
    double loss = 0, lr = 0, rate = 0, left = -1, seconds = 0;
    std::string activity;  // "", "testing", "saving", "paused"
    std::string how, why;  // of the end
  };

  std::string token_;
  PageHead head_;
  bool open_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Line> lines_;
  std::int64_t version_ = 1;  // changes if lines are dropped
  Now now_;
  std::string profile_ = "null";  // JSON
  std::int64_t profiles_ = 0;     // number of profiles so far
  std::string predictions_ = "null";
  std::int64_t pictures_ = 0;  // number of predictions so far
  bool pause_ = false, save_ = false, measure_ = false, stop_ = false;  // pressed buttons
  double polled_at_ = -1e9;
  bool end_was_seen_ = false;
  HttpServer server_;  // last: its thread uses the others
};

}  // namespace tensorgrad::cli
