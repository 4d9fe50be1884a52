// SPDX-License-Identifier: MIT
// Drawings in SVG: shapes, text, and plots of curves.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/sample.h"

namespace sample {

// Points of a curve, in the order in which they are joined.
using Points = std::vector<std::pair<double, double>>;

// A named curve of a plot.
struct Curve {
  std::string name;
  Points points;
};

// The rectangle in which a plot is drawn, without its labels.
struct Frame {
  double left, top, width, height;
};

struct PlotOptions {
  std::string title, x_name;
  int ticks = 6;       // approximate number on each axis
  bool legend = true;  // names of the curves, above the frame on the right
};

struct TextStyle {
  double size = 13;
  const char* anchor = "start";  // or "middle", "end"
  const char* color = "#212529";
  bool bold = false;
};

// Returns the color of the i-th curve of a plot. The colors are distinguishable with any color
// vision (Okabe and Ito).
const char* curve_color(std::size_t i);

// Returns a color between white, at 0, and `color` ("#rrggbb"), at 1.
std::string shade(const std::string& color, double value);

// A drawing on white. Units are pixels, y points down.
class Drawing {
 public:
  Drawing(double width, double height);

  void line(double x1, double y1, double x2, double y2, const std::string& color, double width = 1);
  void polyline(const Points& points, const std::string& color, double width = 2);
  void rect(const Frame& frame, const std::string& fill, const std::string& border = "none",
            double width = 1);
  void circle(double x, double y, double radius, const std::string& fill);
  void text(double x, double y, const std::string& text, const TextStyle& style = {});

  // Draws curves over axes that include all points.
  void plot(const Frame& frame, const std::vector<Curve>& curves, const PlotOptions& options);

  // Writes OUT/NAME and prints its path.
  void save(const Options& options, const std::string& name) const;

 private:
  std::string svg_;
};

// Writes a plot of curves as OUT/NAME.
void save_curves(const Options& options, const std::string& name, const std::string& x_name,
                 const std::vector<Curve>& curves);

}  // namespace sample
