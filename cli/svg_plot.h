// SPDX-License-Identifier: MIT
// Pictures of a run as SVG text: curves (loss, accuracy) in panels side by side, and a confusion
// matrix. White paper, so that they read on light and dark pages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tensorgrad::cli {

struct Curve {
  std::string name;       // for the legend
  std::vector<double> x;  // growing
  std::vector<double> y;  // as many; what is not finite leaves a gap
  bool smooth = false;    // the values pale, a running mean strong; for noisy losses
  bool marks = false;     // a dot at each value; for a few values, as one per epoch
};

struct CurvePanel {
  std::string title;
  std::string x_label;
  std::vector<Curve> curves;
  bool percent = false;  // y is a share of 1, shown in %
};

// One panel beside the other under one title; panels of one x_label share their x axis. Long curves
// are thinned to what the width can show; the least and the largest value stay.
// std::invalid_argument: no panel, or x and y of different lengths.
std::string curves_svg(const std::string& title, const std::vector<CurvePanel>& panels);

struct ConfusionMatrix {
  std::string title;
  std::vector<std::string> class_names;
  std::vector<std::int64_t> counts;  // [true class, predicted class], none negative
};

// Rows are true classes. A cell's colour is its share of the row; its text is the count (left out
// above 30 classes). The title gets the overall accuracy. std::invalid_argument: counts that do not
// fit the names.
std::string confusion_svg(const ConfusionMatrix& matrix);

}  // namespace tensorgrad::cli
