// SPDX-License-Identifier: MIT
#include "ui/text_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "plot/svg_text.h"

namespace tensorgrad::cli {
namespace {

constexpr std::size_t kMaxMarks = 60;     // of a curve; more would hide it
constexpr std::size_t kMinSmoothed = 25;  // values of a curve

struct PlotPoint {
  double x, y;
};

// A range of values on an axis of `dots` dots.
struct DotAxis {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  int dots = 1;

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] int dot(double value) const {
    const double share = (value - low) / (high - low);
    return std::clamp(static_cast<int>(std::lround(share * (dots - 1))), 0, dots - 1);
  }
};

// Dots of a part of the canvas.
class DotGrid {
 public:
  DotGrid(int columns, int rows, bool braille)
      : columns_(columns),
        rows_(rows),
        per_column_(braille ? 2 : 1),
        per_row_(braille ? 4 : 3),
        cells_(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows)) {}

  [[nodiscard]] int width() const { return columns_ * per_column_; }
  [[nodiscard]] int height() const { return rows_ * per_row_; }
  [[nodiscard]] int column_of(int x) const { return x / per_column_; }
  // Dots count from the bottom.
  [[nodiscard]] int row_of(int y) const { return rows_ - 1 - y / per_row_; }

  void line(int x, int y, int to_x, int to_y, Ink ink) {
    const int dx = std::abs(to_x - x), dy = -std::abs(to_y - y);
    const int step_x = x < to_x ? 1 : -1, step_y = y < to_y ? 1 : -1;
    for (int error = dx + dy;;) {
      dot(x, y, ink);
      if (x == to_x && y == to_y) return;
      const int twice = 2 * error;
      if (twice >= dy) {
        error += dy;
        x += step_x;
      }
      if (twice <= dx) {
        error += dx;
        y += step_y;
      }
    }
  }

  void draw(Canvas& canvas, int left, int top) const {
    for (int row = 0; row < rows_; ++row) {
      for (int column = 0; column < columns_; ++column) {
        const DotCell& cell = cells_[index(column, row)];
        if (cell.dots != 0) canvas.set(left + column, top + row, glyph(cell.dots), cell.ink);
      }
    }
  }

 private:
  struct DotCell {
    std::uint8_t dots = 0;
    Ink ink = Ink::kPlain;
  };

  [[nodiscard]] std::size_t index(int column, int row) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
           static_cast<std::size_t>(column);
  }

  void dot(int x, int y, Ink ink) {
    // Bits of the dots from top to bottom, as in the code points of braille.
    constexpr std::array<std::array<std::uint8_t, 4>, 2> kBraille = {
        {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
    const auto from_top = static_cast<std::size_t>(per_row_ - 1 - y % per_row_);
    const auto across = static_cast<std::size_t>(x % per_column_);
    DotCell& cell = cells_[index(column_of(x), row_of(y))];
    // In ASCII, the dots of two curves in one cell would be unreadable.
    if (per_row_ == 3 && cell.ink != ink) cell.dots = 0;
    cell.dots |=
        per_row_ == 4 ? kBraille[across][from_top] : static_cast<std::uint8_t>(1U << from_top);
    cell.ink = ink;
  }

  [[nodiscard]] std::string glyph(std::uint8_t dots) const {
    if (per_row_ == 3) {
      constexpr std::string_view kAscii = " '-|.|||";  // by the bits: top, middle, bottom
      return std::string(1, kAscii[dots]);
    }
    return {'\xe2', static_cast<char>(0xa0 + dots / 64), static_cast<char>(0x80 + dots % 64)};
  }

  int columns_, rows_, per_column_, per_row_;
  std::vector<DotCell> cells_;
};

// Returns 1, 2 and 5 times powers of ten, or only the powers if there are many.
std::vector<double> logarithmic_ticks(double low, double high, int count) {
  std::vector<double> ticks;
  const int from = static_cast<int>(std::floor(std::log10(low)));
  const int to = static_cast<int>(std::ceil(std::log10(high)));
  const bool many = to - from > std::max(count / 2, 1);
  for (int power = from; power <= to; ++power) {
    for (const int digit : {1, 2, 5}) {
      const double tick = digit * std::pow(10.0, power);
      if (tick >= low && tick <= high && (digit == 1 || !many)) ticks.push_back(tick);
    }
  }
  return ticks.size() > 1 ? ticks : std::vector<double>{low, high};
}

std::vector<PlotPoint> drawn_points(const Curve& curve, bool logarithmic) {
  const std::vector<double>& y =
      curve.smooth && curve.y.size() >= kMinSmoothed ? smoothed(curve.y) : curve.y;
  std::vector<PlotPoint> points;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!std::isfinite(y[i]) || std::abs(y[i]) > 1e150 || (logarithmic && y[i] <= 0)) continue;
    points.push_back({curve.x[i], logarithmic ? std::log10(y[i]) : y[i]});
  }
  return points;
}

}  // namespace

Ink curve_ink(std::size_t curve) { return curve == 0 ? Ink::kAccent : Ink::kSecond; }

bool shows_marks(const Curve& curve) {
  return (curve.marks && curve.x.size() <= kMaxMarks) || curve.x.size() == 1;
}

void draw_curves(Canvas& canvas, const PlotArea& area, const std::vector<Curve>& curves,
                 bool logarithmic) {
  std::vector<std::vector<PlotPoint>> points;
  DotAxis x, y;
  for (const Curve& curve : curves) {
    points.push_back(drawn_points(curve, logarithmic));
    for (const PlotPoint& point : points.back()) {
      x.add(point.x);
      y.add(point.y);
    }
  }
  if (x.low > x.high) {
    canvas.text(area.x, area.y + area.rows / 2, "no values yet", Ink::kMuted, area.columns);
    return;
  }
  if (x.low < x.high / 20) x.low = 0;
  if (x.low == x.high) x.high = x.low + 1;
  if (y.low == y.high) {
    const double room = logarithmic || y.low == 0 ? 1 : std::abs(y.low) / 10;
    y.low -= room;
    y.high += room;
  }

  const int rows = area.rows - 1;
  const int wanted = std::max(2, rows / 3);
  std::vector<double> ticks =
      logarithmic ? logarithmic_ticks(std::pow(10.0, y.low), std::pow(10.0, y.high), wanted)
                  : nice_ticks(y.low, y.high, wanted);
  std::vector<std::string> labels;
  std::size_t width = 0;
  for (double& tick : ticks) {
    labels.push_back(shortened(short_number(tick), 9));
    width = std::max(width, labels.back().size());
    if (logarithmic) tick = std::log10(tick);
  }
  const int left = static_cast<int>(width) + 1;  // of the axis, after a blank
  const int columns = area.columns - left - 1;
  if (columns < 2 || rows < 2) return;
  DotGrid grid(columns, rows, canvas.unicode());
  x.dots = grid.width();
  y.dots = grid.height();
  for (int row = 0; row < rows; ++row)
    canvas.set(area.x + left, area.y + row, canvas.unicode() ? "\u2502" : "|", Ink::kMuted);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const int row = area.y + grid.row_of(y.dot(ticks[i]));
    canvas.text_before(area.x + left - 1, row, labels[i], Ink::kMuted);
    canvas.set(area.x + left, row, canvas.unicode() ? "\u2524" : "+", Ink::kMuted);
  }
  int free = area.x;  // first column that the labels of x have not taken
  for (const double tick : nice_ticks(x.low, x.high, std::max(2, columns / 12))) {
    if (tick != std::round(tick)) continue;
    const std::string label = short_number(tick);
    const int size = static_cast<int>(label.size());
    const int at = std::min(area.x + left + 1 + grid.column_of(x.dot(tick)) - size / 2,
                            area.x + area.columns - size);
    if (at < free) continue;
    canvas.text(at, area.y + rows, label, Ink::kMuted);
    free = at + size + 1;
  }

  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::vector<PlotPoint>& line = points[i];
    for (std::size_t k = 0; k < line.size(); ++k) {
      const PlotPoint& from = line[k == 0 ? 0 : k - 1];
      grid.line(x.dot(from.x), y.dot(from.y), x.dot(line[k].x), y.dot(line[k].y), curve_ink(i));
    }
  }
  const int first = area.x + left + 1;
  grid.draw(canvas, first, area.y);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!shows_marks(curves[i])) continue;
    for (const PlotPoint& point : points[i]) {
      canvas.set(first + grid.column_of(x.dot(point.x)), area.y + grid.row_of(y.dot(point.y)),
                 canvas.unicode() ? "\u25cf" : "o", curve_ink(i));
    }
  }
}

}  // namespace tensorgrad::cli
