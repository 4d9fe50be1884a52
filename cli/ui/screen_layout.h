// SPDX-License-Identifier: MIT
// What the full-screen view of a run shows, and where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plot/svg_plot.h"
#include "ui/canvas.h"
#include "ui/live_run.h"

namespace tensorgrad::cli {

inline constexpr int kMinColumns = 80, kMinRows = 20;

// A snapshot with the curves and samples of all lines so far.
struct RunFigures {
  struct Sample {
    std::int64_t step = 0;
    std::string prompt, text;
  };

  RunSnapshot shot;  // its lines are empty
  Curve training{.name = "training", .x = {}, .y = {}, .smooth = true};
  Curve held_out{.name = "", .x = {}, .y = {}, .marks = true};
  std::optional<double> accuracy;    // on the held-out data
  std::vector<Sample> samples;       // the last ones
  std::vector<std::string> printed;  // lines that the tool printed

  // Adds the lines of a later snapshot, and keeps the rest of it.
  void take(RunSnapshot further);
};

// What the lower part of the screen shows.
enum class ScreenPanel { kResults, kLaunches, kLines };

struct ScreenOptions {
  bool logarithmic = false;
  ScreenPanel panel = ScreenPanel::kResults;
};

// Returns the panels that have something to show.
std::vector<ScreenPanel> panels_of(const RunFigures& figures);

// Draws the run. A canvas smaller than kMinColumns x kMinRows gets a message instead.
void draw_run(Canvas& canvas, const RunFigures& figures, const ScreenOptions& options);

}  // namespace tensorgrad::cli
