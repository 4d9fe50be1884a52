// SPDX-License-Identifier: MIT
// A screen of character cells. Text is written so that a terminal cannot take any of it for a
// control sequence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad::cli {

enum class Ink { kPlain, kBold, kMuted, kAccent, kSecond, kGood, kError, kKey };

// A character with the marks that combine with it. Wide ones take two columns.
struct Glyph {
  std::string text;
  int columns = 1;
};

// Returns the characters of a text. "?" stands for control characters, for those that change the
// direction of the text, for bytes that are not valid UTF-8, and, unless `unicode`, for all
// characters outside ASCII.
std::vector<Glyph> glyphs_of(std::string_view text, bool unicode);

class Canvas {
 public:
  Canvas(int columns, int rows, bool unicode);

  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] bool unicode() const { return unicode_; }

  // Writes a text into at most `width` columns, and returns how many it takes. A longer text ends
  // with "..". Drops what is outside the canvas.
  int text(int x, int y, std::string_view text, Ink ink = Ink::kPlain, int width = 10'000);
  // Writes a text that ends before column `x`.
  void text_before(int x, int y, std::string_view text, Ink ink = Ink::kPlain);
  // Sets a cell to a character of one column.
  void set(int x, int y, std::string_view glyph, Ink ink);

  // Returns the bytes that draw a row, without trailing blanks.
  [[nodiscard]] std::string row(int y, bool color) const;

 private:
  struct Cell {
    std::string glyph = " ";  // empty: the second half of a wide character
    Ink ink = Ink::kPlain;
  };

  Cell* cell(int x, int y);

  int columns_, rows_;
  bool unicode_;
  std::vector<Cell> cells_;
};

// Returns the text in lines of at most `width` columns, broken at spaces where possible.
std::vector<std::string> wrapped(std::string_view text, int width, bool unicode);

}  // namespace tensorgrad::cli
