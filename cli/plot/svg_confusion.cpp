// SPDX-License-Identifier: MIT
// The confusion matrix as an SVG heat map: color by fraction of the true class, counts as text.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "plot/svg_plot.h"
#include "plot/svg_text.h"

namespace tensorgrad::cli {
namespace {

constexpr std::size_t kMaxWithCounts = 30;
constexpr std::size_t kMaxNames = 30;  // if there are more classes, only some are named
constexpr double kHeatTop = 70;
constexpr double kGridMargin = 16;
constexpr double kBarWidth = 14;
constexpr double kMatrixSize = 520;

// Color scale from white to dark blue; colors between these are interpolated.
constexpr double kStops[][3] = {{255, 255, 255}, {208, 225, 242}, {148, 196, 223},
                                {74, 152, 201},  {23, 100, 171},  {8, 48, 107}};

std::string color_of(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (std::size(kStops) - 1);
  const auto i = std::min(static_cast<std::size_t>(place), std::size(kStops) - 2);
  const double part = place - static_cast<double>(i);
  const auto mix = [&](std::size_t c) {
    return static_cast<int>(std::lround(kStops[i][c] * (1 - part) + kStops[i + 1][c] * part));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2));
}

// Layout and sums of a matrix.
struct Heat {
  const ConfusionPlot& matrix;
  std::size_t n;
  double cell;
  double left;               // x of the first column
  double side;               // width and height of all cells
  std::vector<double> rows;  // sums of the rows
  double total = 0;
  double right = 0;

  [[nodiscard]] double count(std::size_t truth, std::size_t predicted) const {
    return static_cast<double>(matrix.counts[truth * n + predicted]);
  }
};

Heat heat_of(const ConfusionPlot& matrix) {
  const std::size_t n = matrix.class_names.size();
  if (n == 0 || matrix.counts.size() != n * n) {
    throw std::invalid_argument(
        fmt::format("confusion matrix: {} counts for {} classes", matrix.counts.size(), n));
  }
  if (std::any_of(matrix.counts.begin(), matrix.counts.end(), [](auto c) { return c < 0; })) {
    throw std::invalid_argument("confusion matrix: negative count");
  }
  std::size_t longest = 0;
  for (const std::string& name : matrix.class_names) {
    longest = std::max(longest, std::min<std::size_t>(name.size(), 16));
  }
  Heat heat{.matrix = matrix, .n = n, .cell = 0, .left = 0, .side = 0, .rows = {}};
  heat.cell = std::clamp(kMatrixSize / static_cast<double>(n), 2.0, 70.0);
  heat.side = heat.cell * static_cast<double>(n);
  heat.left = 44 + 6.8 * static_cast<double>(longest);
  for (std::size_t t = 0; t < n; ++t) {
    double row = 0;
    for (std::size_t p = 0; p < n; ++p) row += heat.count(t, p);
    heat.rows.push_back(row);
    heat.total += row;
    heat.right += heat.count(t, t);
  }
  return heat;
}

std::string cells(const Heat& heat) {
  std::string out;
  const double text_size = std::min(13.0, heat.cell * 0.34);
  for (std::size_t t = 0; t < heat.n; ++t) {
    for (std::size_t p = 0; p < heat.n; ++p) {
      const double count = heat.count(t, p);
      if (count == 0) continue;  // same as the background
      const double share = count / heat.rows[t];
      const double x = heat.left + heat.cell * static_cast<double>(p);
      const double y = kHeatTop + heat.cell * static_cast<double>(t);
      out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                         coordinate(x), coordinate(y), coordinate(heat.cell), coordinate(heat.cell),
                         color_of(share));
      if (heat.n > kMaxWithCounts) continue;
      const std::string text = count < 1e5 ? fmt::format("{:.0f}", count) : short_number(count);
      out += svg_text(x + heat.cell / 2, y + heat.cell / 2 + text_size * 0.36, text,
                      {.size = text_size,
                       .color = share > 0.5 ? "#ffffff" : "#212529",
                       .anchor = "middle",
                       .bold = t == p});
    }
  }
  return out;
}

std::string cell_grid(const Heat& heat) {
  if (heat.n > kMaxNames) {
    return fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" "
        "stroke=\"#adb5bd\"/>\n",
        coordinate(heat.left), coordinate(kHeatTop), coordinate(heat.side), coordinate(heat.side));
  }
  std::string path;
  for (std::size_t i = 0; i <= heat.n; ++i) {
    const double step = heat.cell * static_cast<double>(i);
    path += fmt::format("M{} {}h{}M{} {}v{}", coordinate(heat.left), coordinate(kHeatTop + step),
                        coordinate(heat.side), coordinate(heat.left + step), coordinate(kHeatTop),
                        coordinate(heat.side));
  }
  return "<path d=\"" + path + "\" stroke=\"#dee2e6\" fill=\"none\"/>\n";
}

std::string names(const Heat& heat, double bottom_room) {
  std::string out;
  const std::size_t step = (heat.n + kMaxNames - 1) / kMaxNames;
  const double size = std::clamp(heat.cell * static_cast<double>(step) * 0.8, 5.0, 12.0);
  const double bottom = kHeatTop + heat.side;
  for (std::size_t i = 0; i < heat.n; i += step) {
    const std::string name = shortened(heat.matrix.class_names[i], 16);
    const double middle = heat.cell * (static_cast<double>(i) + 0.5);
    out += svg_text(heat.left - 8, kHeatTop + middle + size * 0.36, name,
                    {.size = size, .anchor = "end"});
    out += svg_text(heat.left + middle + size * 0.3, bottom + 14, name,
                    {.size = size, .anchor = "end", .turn = -45});
  }
  out += svg_text(16, kHeatTop + heat.side / 2, "true class",
                  {.size = 13, .color = kMutedText, .anchor = "middle", .turn = -90});
  out += svg_text(heat.left + heat.side / 2, bottom + bottom_room - 12, "predicted class",
                  {.size = 13, .color = kMutedText, .anchor = "middle"});
  return out;
}

// Returns the color bar at the right: from 0 to 100 % of the true class.
std::string color_bar(const Heat& heat) {
  std::string out;
  constexpr int kSteps = 50;
  const double x = heat.left + heat.side + kGridMargin;
  const double step = heat.side / kSteps;
  for (int i = 0; i < kSteps; ++i) {
    out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                       coordinate(x), coordinate(kHeatTop + step * i), coordinate(kBarWidth),
                       coordinate(i + 1 < kSteps ? step + 0.5 : step),
                       color_of(1 - (i + 0.5) / kSteps));
  }
  out += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" "
      "stroke=\"#adb5bd\"/>\n",
      coordinate(x), coordinate(kHeatTop), coordinate(kBarWidth), coordinate(heat.side));
  for (int percent = 0; percent <= 100; percent += 25) {
    out += svg_text(x + kBarWidth + 6, kHeatTop + heat.side * (1 - percent / 100.0) + 4,
                    fmt::format("{}%", percent), {.size = 11, .color = kMutedText});
  }
  return out;
}

}  // namespace

std::string confusion_svg(const ConfusionPlot& matrix) {
  const Heat heat = heat_of(matrix);
  const double bottom_room = 50 + (heat.left - 44) * 0.75;
  // The title must fit above a small matrix.
  const double width = std::max(heat.left + heat.side + kGridMargin + kBarWidth + 48, 460.0);
  const double height = kHeatTop + heat.side + bottom_room;
  std::string title = shortened(matrix.title, 60);
  if (!title.empty()) title += ": ";
  title += heat.total > 0 ? fmt::format("accuracy {:.2f}%", 100 * heat.right / heat.total)
                          : std::string("no data");
  std::string out = svg_head(width, height, title);
  out += svg_text(24, 30, title, {.size = 17, .bold = true});
  out += svg_text(24, 50,
                  fmt::format("{:.0f} of {:.0f} correct; color: fraction of the true class",
                              heat.right, heat.total),
                  {.size = 12, .color = kMutedText});
  out += cells(heat) + cell_grid(heat) + names(heat, bottom_room) + color_bar(heat);
  return out + "</svg>\n";
}

}  // namespace tensorgrad::cli
