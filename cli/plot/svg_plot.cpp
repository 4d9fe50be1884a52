// SPDX-License-Identifier: MIT
// Curves as SVG: panels with a grid at round numbers, a legend and lines. Nothing is clipped: the
// axes include every point.
#include "plot/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "plot/svg_text.h"

namespace tensorgrad::cli {
namespace {

constexpr double kPanelWidth = 400;  // of the plotting area
constexpr double kPanelHeight = 260;
constexpr double kLeft = 62;  // left margin, with tick labels
constexpr double kRight = 22;
constexpr double kTop = 92;  // top margin, with titles and legend
constexpr double kBottom = 54;
constexpr std::string_view kGrid = "#e9ecef";
constexpr std::string_view kAxis = "#868e96";
constexpr std::string_view kPale = " stroke-opacity=\"0.25\"";
// Distinguishable with any color vision (Okabe and Ito), and dark enough for a white background.
constexpr std::string_view kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                        "#b8860b", "#56b4e9", "#000000"};
// Dashes tell curves with the same color apart.
constexpr std::string_view kDashes[] = {"", " stroke-dasharray=\"7 4\"",
                                        " stroke-dasharray=\"2 4\""};
constexpr double kLegendRow = 18;

struct Point {
  double x;
  double y;
};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Makes the range finite and nonempty.
  void settle() {
    if (!(low <= high)) *this = {0, 1};
    if (low == high) {
      const double room = low == 0 ? 1 : std::abs(low) / 2;
      low -= room;
      high += room;
    }
  }
};

// Returns true if the value is finite and small enough for the arithmetic of the axes.
bool can_be_drawn(double value) { return std::isfinite(value) && std::abs(value) < 1e150; }

// Returns the range of the curves along x, including 0.
Range x_range(const CurvePanel& panel) {
  Range range;
  for (const Curve& curve : panel.curves) {
    if (curve.x.size() != curve.y.size()) {
      throw std::invalid_argument(fmt::format("curve {}: {} x values and {} y values", curve.name,
                                              curve.x.size(), curve.y.size()));
    }
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (can_be_drawn(curve.x[i]) && can_be_drawn(curve.y[i])) range.add(curve.x[i]);
    }
  }
  if (range.low <= range.high) range.low = std::min(range.low, 0.0);
  return range;
}

// Short curves are not smoothed.
bool is_smoothed(const Curve& curve) { return curve.smooth && curve.y.size() > 50; }

// Returns the labels of an axis, with the same number of decimals.
std::vector<std::string> tick_names(const std::vector<double>& ticks, bool percent) {
  std::vector<std::string> names;
  std::size_t decimals = 0;
  const auto decimals_of = [](const std::string& name) {
    const std::size_t point = name.find('.');
    return point == std::string::npos ? 0 : name.size() - point - 1;
  };
  bool plain = true;
  for (const double tick : ticks) {
    names.push_back(short_number(percent ? tick * 100 : tick));
    plain = plain && names.back().find_first_not_of("-.0123456789") == std::string::npos;
    decimals = std::max(decimals, decimals_of(names.back()));
  }
  for (std::string& name : names) {
    if (plain && decimals > 0) {
      if (decimals_of(name) == 0) name += '.';
      name.append(decimals - decimals_of(name), '0');
    }
    if (percent) name += '%';
  }
  return names;
}

// An entry of a legend, at x pixels from the left of its panel.
struct LegendEntry {
  const Curve* curve;
  std::string name;
  double x;
  int row;
  bool raw;  // stands for the values of a smoothed curve
};

std::string legend_name(const CurvePanel& panel, const Curve& curve) {
  std::string name = shortened(curve.name, 24);
  for (std::size_t k = curve.y.size(); k-- > 0;) {
    if (!can_be_drawn(curve.y[k])) continue;
    const double last = is_smoothed(curve) ? smoothed(curve.y)[k] : curve.y[k];
    name += panel.percent ? fmt::format(", last {:.2f}%", last * 100)
                          : fmt::format(", last {:.4g}", last);
    break;
  }
  return name;
}

// Returns the legend of a panel, in as many rows as the names of its curves need. What stands for
// raw values is left out if it does not fit into the last row.
std::vector<LegendEntry> legend_entries(const CurvePanel& panel) {
  std::vector<LegendEntry> entries;
  double x = 0;
  int row = 0;
  const auto add = [&](const Curve& curve, std::string name, bool raw) {
    const double width = 26 + 6.2 * static_cast<double>(name.size()) + 12;
    if (x > 0 && x + width > kPanelWidth + kRight) {
      if (raw) return;
      x = 0;
      ++row;
    }
    entries.push_back({&curve, std::move(name), x, row, raw});
    x += width;
  };
  for (const Curve& curve : panel.curves) add(curve, legend_name(panel, curve), false);
  for (const Curve& curve : panel.curves) {
    if (is_smoothed(curve)) add(curve, "raw values", true);
  }
  return entries;
}

// Draws one panel, with its plotting area at (left, top).
class PanelDrawer {
 public:
  // `names` are the names of the curves of all panels; they determine the colors. The title and
  // the legend are above the plotting area, from `head` on.
  PanelDrawer(const CurvePanel& panel, const std::vector<std::string>& names, const Range& x,
              double left, double head, double top)
      : panel_(panel), names_(names), left_(left), head_(head), top_(top), x_(x) {
    x_.settle();
    Range y;
    for (const Curve& curve : panel.curves) {
      for (std::size_t i = 0; i < curve.x.size(); ++i) {
        if (can_be_drawn(curve.x[i]) && can_be_drawn(curve.y[i])) y.add(curve.y[i]);
      }
    }
    const bool shares = panel.percent && y.low >= 0 && y.high <= 1;
    y.settle();
    // Adds margins above and below. If the values come close to 0, the axis starts at 0. An axis
    // of percentages stays within 0 and 100 %.
    const double room = 0.06 * (y.high - y.low);
    y_.low = y.low >= 0 && y.low <= room * 5 ? 0 : y.low - room;
    y_.high = y.high + room;
    if (shares) y_ = {std::max(0.0, y_.low), std::min(1.0, y_.high)};
  }

  std::string draw() const {
    std::string out = svg_text(left_, head_, panel_.title, {.size = 14, .bold = true});
    out += grid();
    for (const Curve& each : panel_.curves) out += curve(each);
    out += legend();
    out += svg_text(left_ + kPanelWidth / 2, top_ + kPanelHeight + 40, panel_.x_label,
                    {.size = 12, .color = kMutedText, .anchor = "middle"});
    return out;
  }

 private:
  [[nodiscard]] double to_x(double value) const {
    return left_ + kPanelWidth * (value - x_.low) / (x_.high - x_.low);
  }
  [[nodiscard]] double to_y(double value) const {
    return top_ + kPanelHeight * (y_.high - value) / (y_.high - y_.low);
  }
  // Returns the color of a curve. Curves with the same name have the same color in all panels.
  [[nodiscard]] std::string_view color_of(const Curve& curve) const {
    return kColors[index_of(curve) % std::size(kColors)];
  }
  [[nodiscard]] std::string_view dashes_of(const Curve& curve) const {
    return kDashes[index_of(curve) / std::size(kColors) % std::size(kDashes)];
  }
  [[nodiscard]] std::size_t index_of(const Curve& curve) const {
    return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), curve.name) -
                                    names_.begin());
  }

  [[nodiscard]] std::string grid() const;
  [[nodiscard]] std::string curve(const Curve& curve) const;
  [[nodiscard]] std::vector<std::vector<Point>> runs(const std::vector<double>& x,
                                                     const std::vector<double>& y) const;
  [[nodiscard]] std::string lines(const std::vector<std::vector<Point>>& runs,
                                  std::string_view style) const;
  [[nodiscard]] std::string legend() const;

  const CurvePanel& panel_;
  const std::vector<std::string>& names_;
  double left_;
  double head_;
  double top_;
  Range x_;
  Range y_;
};

std::string PanelDrawer::grid() const {
  std::string out;
  const auto line = [&](double x1, double y1, double x2, double y2, std::string_view color) {
    out += fmt::format("<path d=\"M{} {}L{} {}\" stroke=\"{}\" fill=\"none\"/>\n", coordinate(x1),
                       coordinate(y1), coordinate(x2), coordinate(y2), color);
  };
  const double bottom = top_ + kPanelHeight;
  const std::vector<double> y_ticks = nice_ticks(y_.low, y_.high, 6);
  const std::vector<std::string> y_names = tick_names(y_ticks, panel_.percent);
  for (std::size_t i = 0; i < y_ticks.size(); ++i) {
    const double y = to_y(y_ticks[i]);
    line(left_, y, left_ + kPanelWidth, y, kGrid);
    out +=
        svg_text(left_ - 8, y + 4, y_names[i], {.size = 11, .color = kMutedText, .anchor = "end"});
  }
  std::vector<double> x_ticks = nice_ticks(x_.low, x_.high, 6);
  // x counts epochs or steps: fractions are shown only if the range is below 2.
  if (x_.high - x_.low >= 2) std::erase_if(x_ticks, [](double x) { return x != std::round(x); });
  const std::vector<std::string> x_names = tick_names(x_ticks, false);
  for (std::size_t i = 0; i < x_ticks.size(); ++i) {
    const double x = to_x(x_ticks[i]);
    line(x, top_, x, bottom, kGrid);
    out +=
        svg_text(x, bottom + 18, x_names[i], {.size = 11, .color = kMutedText, .anchor = "middle"});
  }
  line(left_, bottom, left_ + kPanelWidth, bottom, kAxis);
  line(left_, top_, left_, bottom, kAxis);
  return out;
}

// Returns the contiguous segments of a curve in plot coordinates. If more than four points share a
// pixel column, only the first, smallest, largest and last are kept.
std::vector<std::vector<Point>> PanelDrawer::runs(const std::vector<double>& x,
                                                  const std::vector<double>& y) const {
  std::vector<std::vector<Point>> runs;
  std::vector<Point> column;
  const auto flush = [&] {
    if (column.size() > 4) {
      const auto by_y = [](const Point& a, const Point& b) { return a.y < b.y; };
      auto [least, most] = std::minmax_element(column.begin(), column.end(), by_y);
      if (most < least) std::swap(least, most);
      column = {column.front(), *least, *most, column.back()};
    }
    if (!column.empty()) runs.back().insert(runs.back().end(), column.begin(), column.end());
    column.clear();
  };
  bool open = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!can_be_drawn(x[i]) || !can_be_drawn(y[i])) {
      if (open) flush();
      open = false;
      continue;
    }
    const Point point{to_x(x[i]), to_y(y[i])};
    if (!open) runs.emplace_back();
    if (!column.empty() && std::floor(column.front().x) != std::floor(point.x)) flush();
    column.push_back(point);
    open = true;
  }
  if (open) flush();
  return runs;
}

std::string PanelDrawer::lines(const std::vector<std::vector<Point>>& runs,
                               std::string_view style) const {
  std::string out;
  for (const std::vector<Point>& run : runs) {
    if (run.size() == 1) continue;  // curve() draws a dot
    std::string points;
    for (const Point& p : run) {
      points += fmt::format("{}{},{}", points.empty() ? "" : " ", coordinate(p.x), coordinate(p.y));
    }
    out += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\" "
        "stroke-linecap=\"round\" {}/>\n",
        points, style);
  }
  return out;
}

std::string PanelDrawer::curve(const Curve& curve) const {
  const std::vector<std::vector<Point>> raw = runs(curve.x, curve.y);
  const std::string_view color = color_of(curve);
  const std::string strong =
      fmt::format("stroke=\"{}\" stroke-width=\"2\"{}", color, dashes_of(curve));
  if (is_smoothed(curve)) {
    const std::string pale = fmt::format("stroke=\"{}\" stroke-width=\"1\"{}", color, kPale);
    return lines(raw, pale) + lines(runs(curve.x, smoothed(curve.y)), strong);
  }
  std::string out = lines(raw, strong);
  const bool marks = curve.marks && curve.y.size() <= 100;
  for (const std::vector<Point>& run : raw) {
    if (!marks && run.size() > 1) continue;
    for (const Point& p : run) {
      out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"3\" fill=\"{}\"/>\n", coordinate(p.x),
                         coordinate(p.y), color);
    }
  }
  return out;
}

// Returns the legend above the plot: a stroke, the name and the last value of each curve.
std::string PanelDrawer::legend() const {
  std::string out;
  for (const LegendEntry& entry : legend_entries(panel_)) {
    const double x = left_ + entry.x;
    const double y = head_ + 16 + kLegendRow * entry.row;
    const std::string_view style = entry.raw ? kPale : dashes_of(*entry.curve);
    out += fmt::format("<path d=\"M{} {}h18\" stroke=\"{}\" stroke-width=\"3\" fill=\"none\"{}/>\n",
                       coordinate(x), coordinate(y), color_of(*entry.curve), style);
    out += svg_text(x + 24, y + 4, entry.name, {.size = 12, .color = kMutedText});
  }
  return out;
}

}  // namespace

std::vector<double> smoothed(const std::vector<double>& y) {
  std::vector<double> sums(y.size() + 1);
  std::vector<double> counts(y.size() + 1);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const bool drawn = can_be_drawn(y[i]);
    sums[i + 1] = sums[i] + (drawn ? y[i] : 0);
    counts[i + 1] = counts[i] + (drawn ? 1 : 0);
  }
  std::vector<double> out = y;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!can_be_drawn(y[i])) continue;
    const std::size_t half = std::min(i, y.size() / 80 + 1);
    const std::size_t end = std::min(i + half + 1, y.size());
    out[i] = (sums[end] - sums[i - half]) / (counts[end] - counts[i - half]);
  }
  return out;
}

std::string curves_svg(const std::string& title, const std::vector<CurvePanel>& panels) {
  if (panels.empty()) throw std::invalid_argument("plot: no panels");
  const double each = kLeft + kPanelWidth + kRight;
  const double width = each * static_cast<double>(panels.size());
  double top = kTop;
  for (const CurvePanel& panel : panels) {
    const std::vector<LegendEntry> legend = legend_entries(panel);
    if (!legend.empty()) top = std::max(top, kTop + kLegendRow * legend.back().row);
  }
  const double height = top + kPanelHeight + kBottom;
  std::string out = svg_head(width, height, title);
  out += svg_text(kLeft, 32, shortened(title, 42 * panels.size()), {.size = 17, .bold = true});
  std::vector<std::string> names;
  for (const CurvePanel& panel : panels) {
    for (const Curve& curve : panel.curves) {
      if (std::find(names.begin(), names.end(), curve.name) == names.end()) {
        names.push_back(curve.name);
      }
    }
  }
  for (std::size_t i = 0; i < panels.size(); ++i) {
    Range x = x_range(panels[i]);
    for (const CurvePanel& other : panels) {  // same range for panels with the same x_label
      const Range range = x_range(other);
      if (other.x_label != panels[i].x_label || !(range.low <= range.high)) continue;
      x.add(range.low);
      x.add(range.high);
    }
    const double left = each * static_cast<double>(i) + kLeft;
    out += PanelDrawer(panels[i], names, x, left, kTop - 30, top).draw();
  }
  return out + "</svg>\n";
}

}  // namespace tensorgrad::cli
