// SPDX-License-Identifier: MIT
// Shows how training goes: one line that is redrawn on a terminal, plain lines now and then where
// the output is a file or a pipe.
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
  std::string unit = "images";  // what `done` counts
  double plain_interval = 5;    // seconds between plain lines
  // Found out from the stream and the environment (NO_COLOR, TERM, COLUMNS, LANG) unless set.
  std::optional<bool> terminal;
  std::optional<bool> color;
  std::optional<bool> unicode;
  std::optional<int> width;
  // Seconds that only grow; std::chrono::steady_clock unless set.
  std::function<double()> clock;
};

struct ProgressState {
  int epoch = 0;  // from 1; 0 if there are no epochs
  int epochs = 0;
  std::int64_t done = 0;  // units, in all epochs together
  std::int64_t total = 0;
  std::optional<double> loss = 0;  // nothing: work that has none
  double rate = 0;                 // units per second; 0 if not known yet
  double seconds_left = -1;        // negative if not known yet
};

struct LineStyle {
  int width = 80;
  bool color = false;
  bool unicode = false;
  bool bar = true;
};

// One line without a line break, at most `width` columns: what matters least is left out first.
std::string progress_line(const ProgressState& state, std::string_view unit,
                          const LineStyle& style);

// "48.2k", "1.25M", "730".
std::string short_count(double value);
// "0:07", "12:30", "2:03:04".
std::string clock_time(double seconds);

// The loss that the line shows: a running mean, but as it is in the first steps of a training,
// where it falls fast, and in the first one of a training that goes on.
class ShownLoss {
 public:
  void take(std::int64_t step, double loss);
  [[nodiscard]] double value() const { return mean_.value_or(0); }

 private:
  std::optional<double> mean_;
};

// Measures the rate over the last seconds and draws. Draws nothing after finish().
class Progress {
 public:
  Progress(std::int64_t total, int epochs, ProgressOptions options = {});
  ~Progress();  // finishes
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` units of all epochs; cheap enough for every step: draws ten times a second at most.
  void update(int epoch, std::int64_t done, std::optional<double> loss);
  // Time that is not training, such as an evaluation, does not count into the rate: call before
  // and after.
  void pause();
  void resume();
  // Prints a line that stays, above the bar, such as an epoch's result.
  void print(std::string_view line);
  // Ends the bar: on a terminal it is erased, since the printed lines say it all.
  void finish();

  [[nodiscard]] bool on_terminal() const { return terminal_; }

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
  bool drawn_ = false;  // a bar stands on the terminal's last line
  bool finished_ = false;
  double paused_at_ = -1;
  // Start of the time span that the rate is measured over, and a later one that replaces it.
  struct Sample {
    double seconds;
    std::int64_t done;
  };
  std::optional<Sample> old_, young_;
};

}  // namespace tensorgrad::cli
