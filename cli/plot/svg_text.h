// SPDX-License-Identifier: MIT
// Building blocks of SVG: escaped text, numbers, the document head, ticks at round numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad::cli {

// Returns `text` escaped for element content and attributes. Control characters and bytes that are
// not valid UTF-8 become "?".
std::string xml_escaped(std::string_view text);

// Returns a coordinate with at most two decimals: "12.5".
std::string coordinate(double value);

// Returns a number in short form: "0.25", "60k", "1e-06".
std::string short_number(double value);

// Returns the opening tags of a document: size, font, accessible title and white background.
std::string svg_head(double width, double height, std::string_view title);

// Color of secondary text.
inline constexpr std::string_view kMutedText = "#495057";

struct TextStyle {
  double size = 12;
  std::string_view color = "#212529";
  std::string_view anchor = "start";  // start, middle, end
  bool bold = false;
  double turn = 0;  // rotation in degrees
};

// Returns a text element at (x, y).
std::string svg_text(double x, double y, std::string_view text, const TextStyle& style = {});

// Returns about `count` round numbers (1, 2 or 5 times a power of ten) in [low, high], in
// increasing order. Returns {low} if the range is empty or not finite.
std::vector<double> nice_ticks(double low, double high, int count);

// Returns `text` cut to `count` UTF-8 characters; if it was longer, the result ends with "...".
std::string shortened(std::string_view text, std::size_t count);

}  // namespace tensorgrad::cli
