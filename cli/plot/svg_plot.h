// SPDX-License-Identifier: MIT
// Plots of a run as SVG text: curves (loss, accuracy) in adjacent panels, and a confusion matrix.
// The background is white, to be readable on light and dark pages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tensorgrad::cli {

struct Curve {
  std::string name;       // for the legend
  std::vector<double> x;  // increasing
  std::vector<double> y;  // same size as x; values that are not finite leave a gap
  bool smooth = false;    // draws a running mean over pale values; for noisy losses
  bool marks = false;     // draws a dot at each value; for few values, such as one per epoch
};

struct CurvePanel {
  std::string title;
  std::string x_label;
  std::vector<Curve> curves;
  bool percent = false;  // y is a fraction of 1, shown in percent
};

// Returns the running mean over a window of about 1/40 of the curve. At the start, when a loss
// falls fast, the window is smaller. At the end it includes previous values only. Values that are
// not finite, or of 1e150 or more, stay as they are.
std::vector<double> smoothed(const std::vector<double>& y);

// Returns a row of panels under a common title. Panels with the same x_label share the range of
// their x axis. Up to 21 names of curves are told apart by color and dashes. Long curves are
// thinned to the resolution of the plot; minima and maxima are kept. Throws std::invalid_argument
// if there are no panels, or if x and y have different lengths.
std::string curves_svg(const std::string& title, const std::vector<CurvePanel>& panels);

struct ConfusionPlot {
  std::string title;
  std::vector<std::string> class_names;
  std::vector<std::int64_t> counts;  // [true class, predicted class], not negative
};

// Returns a heat map whose rows are true classes. The color of a cell is its fraction of the row;
// its text is the count, omitted if there are more than 30 classes. The title includes the overall
// accuracy. Throws std::invalid_argument if there are no classes, or if the counts do not match
// them or are negative.
std::string confusion_svg(const ConfusionPlot& matrix);

}  // namespace tensorgrad::cli
