// SPDX-License-Identifier: MIT
// Building blocks of SVG.
#include "plot/svg_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "text.h"

namespace tensorgrad::cli {

std::string xml_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t n = character_bytes(text);
    switch (n == 0 ? '?' : text[0]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += n == 0 ? std::string_view("?") : text.substr(0, n); break;
    }
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 1e15) return fmt::format("{:.3g}", value);
  if (size >= 1e9) return fmt::format("{:.4g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.4g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.4g}k", value / 1e3);
  if (size != 0 && size < 1e-4) return fmt::format("{:.3g}", value);
  return fmt::format("{:.6g}", value);
}

std::string svg_head(double width, double height, std::string_view title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', "
      "Helvetica, Arial, sans-serif\">\n<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      coordinate(width), coordinate(height), xml_escaped(title));
}

std::string svg_text(double x, double y, std::string_view text, const TextStyle& style) {
  std::string more;
  if (style.anchor != "start") more += fmt::format(" text-anchor=\"{}\"", style.anchor);
  if (style.bold) more += " font-weight=\"600\"";
  if (style.turn != 0) {
    more += fmt::format(" transform=\"rotate({} {} {})\"", coordinate(style.turn), coordinate(x),
                        coordinate(y));
  }
  return fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{}>{}</text>\n",
                     coordinate(x), coordinate(y), coordinate(style.size), style.color, more,
                     xml_escaped(text));
}

std::vector<double> nice_ticks(double low, double high, int count) {
  if (!(low < high) || !std::isfinite(high - low) || count < 1) return {low};
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double part = rough / power;
  const double step = power * (part < 1.5 ? 1 : part < 3 ? 2 : part < 7 ? 5 : 10);
  std::vector<double> ticks;
  const double slack = 1e-9 * step;
  const double first = std::ceil((low - slack) / step);
  for (int i = 0; (first + i) * step <= high + slack; ++i) {
    const double k = first + i;
    ticks.push_back(k == 0 ? 0.0 : k * step);
    if (ticks.size() > 1000) break;  // steps below the resolution of a double
  }
  return ticks.empty() ? std::vector<double>{low} : ticks;
}

std::string shortened(std::string_view text, std::size_t count) {
  std::size_t characters = 0;
  std::size_t cut = 0;  // bytes of the first count - 3 characters
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;
    if (characters + 3 == count) cut = i;
    ++characters;
  }
  if (characters <= count) return std::string(text);
  return std::string(text.substr(0, cut)) + "...";
}

}  // namespace tensorgrad::cli
