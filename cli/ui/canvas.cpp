// SPDX-License-Identifier: MIT
#include "ui/canvas.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <utf8proc.h>

#include "text.h"

namespace tensorgrad::cli {
namespace {

constexpr std::size_t kMaxGlyphBytes = 16;  // of a character with its combining marks
constexpr std::string_view kPlainStyle = "\x1b[0m";

// Returns the code point of a valid UTF-8 character.
utf8proc_int32_t code_point(std::string_view character) {
  utf8proc_int32_t point = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()),
                   static_cast<utf8proc_ssize_t>(character.size()), &point);
  return point;
}

// True for controls of direction and joining, and for separators of lines.
bool is_invisible(utf8proc_int32_t point) {
  const utf8proc_category_t category = utf8proc_category(point);
  return category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

// True for marks that take no column.
bool is_combining(utf8proc_int32_t point) {
  const utf8proc_category_t category = utf8proc_category(point);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME;
}

// Returns false if terminals may differ in the number of columns.
bool has_sure_width(std::string_view glyph) {
  if (glyph.size() == 1) return true;
  if (character_bytes(glyph) != glyph.size()) return false;
  const utf8proc_int32_t point = code_point(glyph);
  return (point >= 0x2500 && point <= 0x257f) || (point >= 0x2800 && point <= 0x28ff);
}

std::string_view style_of(Ink ink, bool color) {
  switch (ink) {
    case Ink::kPlain: return kPlainStyle;
    case Ink::kBold: return "\x1b[0;1m";
    case Ink::kMuted: return color ? "\x1b[0;38;5;245m" : kPlainStyle;
    case Ink::kAccent: return color ? "\x1b[0;38;5;33m" : kPlainStyle;
    case Ink::kSecond: return color ? "\x1b[0;38;5;208m" : "\x1b[0;1m";
    case Ink::kGood: return color ? "\x1b[0;38;5;35m" : kPlainStyle;
    case Ink::kError: return color ? "\x1b[0;38;5;203m" : "\x1b[0;1m";
    case Ink::kKey: return "\x1b[0;7m";
  }
  return kPlainStyle;
}

}  // namespace

std::vector<Glyph> glyphs_of(std::string_view text, bool unicode) {
  std::vector<Glyph> glyphs;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    // U+0080 to U+009F are one character.
    const bool is_control = text[0] == '\xc2' && text.size() > 1 && (text[1] & 0xc0) == 0x80;
    const std::string_view character =
        text.substr(0, bytes == 0 && is_control ? 2 : std::max<std::size_t>(bytes, 1));
    text.remove_prefix(character.size());
    const utf8proc_int32_t point = bytes == 0 ? 0 : code_point(character);
    if (point == 0 || (!unicode && point > 0x7e) || is_invisible(point)) {
      glyphs.push_back({"?", 1});
    } else if (is_combining(point)) {
      if (glyphs.empty()) glyphs.push_back({" ", 1});
      std::string& before = glyphs.back().text;
      if (before.size() + bytes <= kMaxGlyphBytes) before += character;
    } else {
      glyphs.push_back({std::string(character), utf8proc_charwidth(point) == 2 ? 2 : 1});
    }
  }
  return glyphs;
}

Canvas::Canvas(int columns, int rows, bool unicode)
    : columns_(std::max(columns, 0)),
      rows_(std::max(rows, 0)),
      unicode_(unicode),
      cells_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_)) {}

Canvas::Cell* Canvas::cell(int x, int y) {
  if (x < 0 || y < 0 || x >= columns_ || y >= rows_) return nullptr;
  return &cells_[static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_) +
                 static_cast<std::size_t>(x)];
}

int Canvas::text(int x, int y, std::string_view text, Ink ink, int width) {
  width = std::min(width, columns_ - x);
  std::vector<Glyph> glyphs = glyphs_of(text, unicode_);
  int columns = 0;
  for (const Glyph& glyph : glyphs) columns += glyph.columns;
  if (columns > width) {
    while (!glyphs.empty() && columns > width - 2) {
      columns -= glyphs.back().columns;
      glyphs.pop_back();
    }
    for (; columns < width; ++columns) glyphs.push_back({".", 1});
  }
  int at = x;
  for (Glyph& glyph : glyphs) {
    Cell* const first = cell(at, y);
    if (first == nullptr) break;
    *first = {std::move(glyph.text), ink};
    if (Cell* const second = glyph.columns == 2 ? cell(at + 1, y) : nullptr) *second = {"", ink};
    at += glyph.columns;
  }
  return at - x;
}

void Canvas::text_before(int x, int y, std::string_view text, Ink ink) {
  int columns = 0;
  for (const Glyph& glyph : glyphs_of(text, unicode_)) columns += glyph.columns;
  this->text(std::max(x - columns, 0), y, text, ink, std::min(columns, x));
}

void Canvas::set(int x, int y, std::string_view glyph, Ink ink) {
  if (Cell* const found = cell(x, y)) *found = {std::string(glyph), ink};
}

std::string Canvas::row(int y, bool color) const {
  const auto* const first =
      cells_.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_);
  int end = columns_;
  const auto is_blank = [](const Cell& cell) { return cell.glyph == " " && cell.ink != Ink::kKey; };
  while (end > 0 && is_blank(first[end - 1])) --end;
  std::string out;
  std::string_view style = kPlainStyle;
  bool sure = true;  // that the terminal has the cursor at the same column
  for (int x = 0; x < end; ++x) {
    const Cell& cell = first[x];
    if (cell.glyph.empty()) continue;
    std::string_view wanted = style_of(cell.ink, color);
    // Blanks look the same in all styles but one.
    if (is_blank(cell)) wanted = style == style_of(Ink::kKey, color) ? kPlainStyle : style;
    if (wanted != style) out += wanted;
    style = wanted;
    if (!sure) out += fmt::format("\x1b[{}G", x + 1);
    out += cell.glyph;
    sure = has_sure_width(cell.glyph);
  }
  if (style != kPlainStyle) out += kPlainStyle;
  return out;
}

std::vector<std::string> wrapped(std::string_view text, int width, bool unicode) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::string out;
    int columns = 0;
    std::size_t space = std::string::npos;  // place of the last one in `out`
    for (const Glyph& glyph : glyphs_of(line, unicode)) {
      if (columns + glyph.columns > width && !out.empty()) {
        std::string rest;
        if (glyph.text != " " && space != std::string::npos) {
          rest = out.substr(space + 1);
          out.resize(space);
        }
        lines.push_back(std::move(out));
        out = std::move(rest);
        columns = 0;
        for (const Glyph& each : glyphs_of(out, unicode)) columns += each.columns;
        space = std::string::npos;
        if (glyph.text == " ") continue;
      }
      if (glyph.text == " ") space = out.size();
      out += glyph.text;
      columns += glyph.columns;
    }
    lines.push_back(std::move(out));
  }
  return lines;
}

}  // namespace tensorgrad::cli
