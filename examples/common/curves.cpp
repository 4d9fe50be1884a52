// SPDX-License-Identifier: MIT
// A plot of curves as SVG.
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "common/sample.h"

namespace sample {
namespace {

constexpr int kWidth = 640, kHeight = 400, kLeft = 60, kRight = 20, kTop = 20, kBottom = 45;
constexpr std::array<const char*, 4> kColours = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd"};
constexpr int kTicks = 5;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

struct Range {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -std::numeric_limits<double>::infinity();
  void take(double value) {
    lo = std::min(lo, value);
    hi = std::max(hi, value);
  }
  // From 0 to 1.
  [[nodiscard]] double place(double value) const { return hi > lo ? (value - lo) / (hi - lo) : 0; }
  [[nodiscard]] double at(double place) const { return lo + (hi - lo) * place; }
};

double x_of(double place) { return kLeft + place * (kWidth - kLeft - kRight); }
double y_of(double place) { return kHeight - kBottom - place * (kHeight - kTop - kBottom); }

std::string text(double x, double y, const char* anchor, const std::string& what) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" +
         what + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
         "\" y2=\"" + number(y2) + "\" stroke=\"" + colour + "\"/>\n";
}

}  // namespace

void save_curves(const Options& options, const std::string& name, const std::string& x_name,
                 const std::vector<Curve>& curves) {
  Range x, y;
  x.take(0);
  for (const Curve& curve : curves) {
    for (const auto& [px, py] : curve.points) {
      x.take(px);
      y.take(py);
    }
  }
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(kWidth) +
                    "\" height=\"" + std::to_string(kHeight) +
                    "\" font-family=\"sans-serif\" font-size=\"13\">\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (int tick = 0; tick <= kTicks; ++tick) {
    const double place = static_cast<double>(tick) / kTicks;
    svg += line(x_of(0), y_of(place), x_of(1), y_of(place), "#ddd");
    svg += text(x_of(0) - 6, y_of(place) + 4, "end", number(y.at(place)));
    svg += text(x_of(place), y_of(0) + 18, "middle", number(x.at(place)));
  }
  svg += text(x_of(0.5), kHeight - 8, "middle", x_name);
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const char* colour = kColours[c % kColours.size()];
    svg += "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"" + std::string(colour) +
           "\" points=\"";
    for (const auto& [px, py] : curves[c].points)
      svg += number(x_of(x.place(px))) + "," + number(y_of(y.place(py))) + " ";
    svg += "\"/>\n";
    const double at = kTop + 16 + 18 * static_cast<double>(c);
    svg += line(x_of(1) - 130, at - 4, x_of(1) - 105, at - 4, colour);
    svg += text(x_of(1) - 98, at, "start", curves[c].name);
  }
  const std::string path = options.out + "/" + name;
  tg::write_file_atomically(path, svg + "</svg>\n");
  std::printf("picture: %s\n", path.c_str());
}

}  // namespace sample
