// SPDX-License-Identifier: MIT
// Small pieces of SVG: escaped text, numbers, the frame of a picture, ticks at round numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad::cli {

// `text` fit for element content and attributes; control characters and bytes that are not UTF-8
// become "?".
std::string xml_escaped(std::string_view text);

// A coordinate with at most two decimals: "12.5".
std::string coordinate(double value);

// A number for people: "0.25", "60k", "1e-06".
std::string short_number(double value);

// Opens a picture of the given size: white paper, a font, the title as its accessible name.
std::string svg_head(double width, double height, std::string_view title);

// Text that should not stand out.
inline constexpr std::string_view kMutedText = "#495057";

struct TextStyle {
  double size = 12;
  std::string_view color = "#212529";
  std::string_view anchor = "start";  // start, middle, end
  bool bold = false;
  double turn = 0;  // degrees
};

std::string svg_text(double x, double y, std::string_view text, const TextStyle& style = {});

// Round numbers (1, 2, 5 times a power of ten) inside [low, high], about `count` of them, growing.
std::vector<double> nice_ticks(double low, double high, int count);

// At most `count` characters of UTF-8 text; what is longer ends with "...".
std::string shortened(std::string_view text, std::size_t count);

}  // namespace tensorgrad::cli
