// SPDX-License-Identifier: MIT
#include "common/drawing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace sample {
namespace {

constexpr const char* kGrid = "#e9ecef";
constexpr const char* kMuted = "#495057";

// Returns at most four significant digits, or two decimals.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", std::round(value * 100) / 100 + 0.0);
  return text;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}
std::string attribute(const char* name, double value) { return attribute(name, number(value)); }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] double place(double value) const {  // from 0 to 1
    return high > low ? (value - low) / (high - low) : 0;
  }
};

// Returns about `count` multiples of 1, 2 or 5 times a power of ten.
std::vector<double> ticks(const Range& range, int count) {
  const double rough = (range.high - range.low) / count;
  if (!(rough > 0)) return {range.low};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double part = rough / power, step = power * (part < 1.5 ? 1 : part < 3.5 ? 2 : 5);
  std::vector<double> values;
  const double first = std::ceil(range.low / step - 1e-9);
  const double last = std::floor(range.high / step + 1e-9);
  for (int i = 0; i <= last - first; ++i) values.push_back((first + i) * step);
  return values;
}

std::string label(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", std::abs(value) < 1e-12 ? 0 : value);
  return text;
}

}  // namespace

const char* curve_color(std::size_t i) {
  constexpr std::array kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9"};
  return kColors[i % kColors.size()];
}

std::string shade(const std::string& color, double value) {
  std::string text = "#";
  for (std::size_t i = 1; i < 7; i += 2) {
    const double part = std::stoi(color.substr(i, 2), nullptr, 16);
    char digits[3];
    std::snprintf(
        digits, sizeof digits, "%02x",
        static_cast<unsigned>(std::lround(255 + (part - 255) * std::clamp(value, 0.0, 1.0))));
    text += digits;
  }
  return text;
}

Drawing::Drawing(double width, double height)
    : svg_("<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) +
           attribute("height", height) +
           " font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\">\n"
           "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n") {}

void Drawing::line(double x1, double y1, double x2, double y2, const std::string& color,
                   double width) {
  svg_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
          attribute("y2", y2) + attribute("stroke", color) + attribute("stroke-width", width) +
          "/>\n";
}

void Drawing::polyline(const Points& points, const std::string& color, double width) {
  std::string list;
  for (const auto& [x, y] : points) list += (list.empty() ? "" : " ") + number(x) + "," + number(y);
  svg_ += "<polyline fill=\"none\" stroke-linejoin=\"round\"" + attribute("stroke", color) +
          attribute("stroke-width", width) + attribute("points", list) + "/>\n";
}

void Drawing::rect(const Frame& frame, const std::string& fill, const std::string& border,
                   double width) {
  svg_ += "<rect" + attribute("x", frame.left) + attribute("y", frame.top) +
          attribute("width", frame.width) + attribute("height", frame.height) +
          attribute("fill", fill) + attribute("stroke", border) + attribute("stroke-width", width) +
          "/>\n";
}

void Drawing::circle(double x, double y, double radius, const std::string& fill) {
  svg_ += "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) +
          attribute("fill", fill) + "/>\n";
}

void Drawing::text(double x, double y, const std::string& text, const TextStyle& style) {
  svg_ += "<text" + attribute("x", x) + attribute("y", y) + attribute("font-size", style.size) +
          attribute("text-anchor", style.anchor) + attribute("fill", style.color) +
          (style.bold ? " font-weight=\"600\"" : "") + ">" + text + "</text>\n";
}

void Drawing::plot(const Frame& frame, const std::vector<Curve>& curves,
                   const PlotOptions& options) {
  Range xs, ys;
  for (const Curve& curve : curves) {
    for (const auto& [x, y] : curve.points) {
      xs.take(x);
      ys.take(y);
    }
  }
  const double margin = 0.04 * (ys.high - ys.low);
  ys = {ys.low - margin, ys.high + margin};
  const double bottom = frame.top + frame.height, right = frame.left + frame.width;
  const auto to_x = [&](double x) { return frame.left + xs.place(x) * frame.width; };
  const auto to_y = [&](double y) { return bottom - ys.place(y) * frame.height; };
  for (const double x : ticks(xs, options.ticks)) {
    line(to_x(x), frame.top, to_x(x), bottom, kGrid);
    text(to_x(x), bottom + 15, label(x), {.size = 11, .anchor = "middle", .color = kMuted});
  }
  for (const double y : ticks(ys, options.ticks)) {
    line(frame.left, to_y(y), right, to_y(y), kGrid);
    text(frame.left - 6, to_y(y) + 4, label(y), {.size = 11, .anchor = "end", .color = kMuted});
  }
  rect(frame, "none", "#adb5bd");
  text(frame.left, frame.top - 9, options.title, {.size = 14, .bold = true});
  text((frame.left + right) / 2, bottom + 33, options.x_name,
       {.size = 12, .anchor = "middle", .color = kMuted});
  double at = right;  // right end of the next name
  for (std::size_t c = curves.size(); c-- > 0;) {
    Points points;
    for (const auto& [x, y] : curves[c].points) points.emplace_back(to_x(x), to_y(y));
    polyline(points, curve_color(c));
    if (!options.legend) continue;
    text(at, frame.top - 9, curves[c].name, {.size = 12, .anchor = "end", .color = kMuted});
    at -= 6.5 * static_cast<double>(curves[c].name.size()) + 8;
    line(at - 16, frame.top - 13, at, frame.top - 13, curve_color(c), 3);
    at -= 28;
  }
}

void Drawing::save(const Options& options, const std::string& name) const {
  const std::string path = options.out + "/" + name;
  tg::write_file_atomically(path, svg_ + "</svg>\n");
  std::printf("picture: %s\n", path.c_str());
}

void save_curves(const Options& options, const std::string& name, const std::string& x_name,
                 const std::vector<Curve>& curves) {
  Drawing drawing(640, 400);
  drawing.plot({60, 35, 560, 315}, curves, {.title = "", .x_name = x_name});
  drawing.save(options, name);
}

}  // namespace sample
