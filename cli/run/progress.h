// SPDX-License-Identifier: MIT
// Progress of training: one redrawn line on a terminal, periodic plain lines if the output is a
// file or a pipe.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tensorgrad::cli {

struct ProgressOptions {
  std::FILE* stream = stderr;
  std::string unit = "images";  // unit of `done`
  double plain_interval = 5;    // seconds between plain lines
  // If not set, detected from the stream and the environment (NO_COLOR, TERM, COLUMNS, LANG).
  std::optional<bool> terminal;
  std::optional<bool> color;
  std::optional<bool> unicode;
  std::optional<int> width;
  // Returns monotonic seconds; std::chrono::steady_clock if not set.
  std::function<double()> clock;
  // If set, receives the lines of print(), and nothing is drawn.
  std::function<void(std::string_view)> take_line;
};

// Properties of the terminal, from the environment.
struct TerminalTraits {
  std::string name;      // TERM
  bool color = true;     // NO_COLOR is not set
  bool unicode = false;  // the locale has UTF-8
};
TerminalTraits terminal_traits();

struct ProgressState {
  int epoch = 0;  // counts from 1; 0 if there are no epochs
  int epochs = 0;
  std::int64_t done = 0;  // units over all epochs
  std::int64_t total = 0;
  std::optional<double> loss = 0;  // not set if the work has no loss
  double rate = 0;                 // units per second; 0 if unknown
  double seconds_left = -1;        // negative if unknown
};

struct LineStyle {
  int width = 80;
  bool color = false;
  bool unicode = false;
  bool bar = true;
};

// Returns a line of at most `style.width` columns, without a line break. If it does not fit, the
// least important parts are dropped first.
std::string progress_line(const ProgressState& state, std::string_view unit,
                          const LineStyle& style);

// Returns a number with a unit suffix: "48.2k", "1.25M", "730".
std::string short_count(double value);
// Returns a duration as "0:07", "12:30" or "2:03:04".
std::string clock_time(double seconds);

// Running mean of the loss, for display. In the first steps of a run, when the loss falls fast, and
// in the first step after a resume it is the loss itself.
class ShownLoss {
 public:
  void take(std::int64_t step, double loss);
  [[nodiscard]] double value() const { return mean_.value_or(0); }

 private:
  std::optional<double> mean_;
};

// Draws the progress, with the rate over the last seconds. Draws nothing after finish().
class Progress {
 public:
  Progress(std::int64_t total, int epochs, ProgressOptions options = {});
  ~Progress();  // calls finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Sets the state; `done` counts units over all epochs. Cheap enough to call in every step: draws
  // at most ten times a second.
  void update(int epoch, std::int64_t done, std::optional<double> loss);
  // Excludes the time between the two calls from the rate, such as that of an evaluation. update()
  // also resumes.
  void pause();
  void resume();
  // Prints a permanent line above the bar, such as the result of an epoch.
  void print(std::string_view line);
  // Ends the drawing. On a terminal the bar is erased.
  void finish();

  [[nodiscard]] bool on_terminal() const { return terminal_; }
  [[nodiscard]] const ProgressState& state() const { return state_; }

 private:
  void draw();
  void erase();
  void sample(double now);
  [[nodiscard]] int width() const;

  ProgressOptions options_;
  bool terminal_;
  LineStyle style_;
  ProgressState state_;
  double last_draw_ = -1e9;
  bool drawn_ = false;  // the last line of the terminal is a bar
  bool finished_ = false;
  double paused_at_ = -1;
  // old_ is the start of the time span for the rate; young_ is the next one to replace it.
  struct Sample {
    double seconds;
    std::int64_t done;
  };
  std::optional<Sample> old_, young_;
};

}  // namespace tensorgrad::cli
