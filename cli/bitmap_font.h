// SPDX-License-Identifier: MIT
// A bitmap font for printable ASCII, for captions in images: 5x7 dots, and 2 rows below the line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tensorgrad::cli {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 9;   // g, j, p, q and y use the last two
inline constexpr int kGlyphAdvance = 6;  // one empty column between glyphs

// Whether the dot at column x (0 to 4) and row y (0 to 8) of `c` is set. What is not printable
// ASCII is an empty box.
bool glyph_dot(char c, int x, int y);

// UTF-8 text with one byte per character to draw: what is not ASCII becomes one box.
std::string drawable(std::string_view text);

}  // namespace tensorgrad::cli
