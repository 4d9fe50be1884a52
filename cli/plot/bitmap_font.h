// SPDX-License-Identifier: MIT
// A bitmap font for captions in images: printable ASCII, 5x7 dots plus two rows for descenders.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tensorgrad::cli {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 9;   // including the two descender rows
inline constexpr int kGlyphAdvance = 6;  // one empty column between glyphs

// Returns true if the dot at column x (0 to 4) and row y (0 to 8) of `c` is set. If `c` is not
// printable ASCII, its glyph is an empty box.
bool glyph_dot(char c, int x, int y);

// Returns UTF-8 `text` with one byte per character. Each character that is not printable ASCII
// becomes the byte of the box glyph.
std::string drawable(std::string_view text);

}  // namespace tensorgrad::cli
