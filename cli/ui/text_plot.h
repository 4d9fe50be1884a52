// SPDX-License-Identifier: MIT
// Curves on a screen of character cells: braille characters of 2x4 dots, or ASCII of 1x3.
#pragma once

#include <vector>

#include "plot/svg_plot.h"
#include "ui/canvas.h"

namespace tensorgrad::cli {

struct PlotArea {
  int x = 0, y = 0, columns = 0, rows = 0;
};

// Returns the ink of a curve, by its place in the list.
Ink curve_ink(std::size_t curve);

// Returns true if each value gets a mark: if marks are requested and there are few values.
bool shows_marks(const Curve& curve);

// Draws curves over their axes. The second and later curves are drawn over the first. A curve with
// `smooth` is drawn as its running mean. On a logarithmic axis, values that are not positive are
// left out.
void draw_curves(Canvas& canvas, const PlotArea& area, const std::vector<Curve>& curves,
                 bool logarithmic);

}  // namespace tensorgrad::cli
