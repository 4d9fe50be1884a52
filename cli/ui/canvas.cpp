// SPDX-License-Identifier: MIT
#include "ui/canvas.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "text.h"

namespace tensorgrad::cli {
namespace {

constexpr std::size_t kMaxGlyphBytes = 16;  // of a character with its combining marks
constexpr std::string_view kPlainStyle = "\x1b[0m";

using CodeRange = std::pair<char32_t, char32_t>;

// Marks that take no column. From Unicode 15: the blocks of combining marks, and those of scripts
// in which they are frequent.
constexpr CodeRange kCombining[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},    {0x64b, 0x65f},
    {0x900, 0x902},   {0x93c, 0x93c},   {0x941, 0x948},   {0x94d, 0x94d},    {0xe31, 0xe31},
    {0xe34, 0xe3a},   {0xe47, 0xe4e},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},  {0x20d0, 0x20ff},
    {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef}};
// Controls of direction and joining, line separators and others that are not seen.
constexpr CodeRange kInvisible[] = {
    {0xad, 0xad},     {0x61c, 0x61c},   {0x115f, 0x1160}, {0x180e, 0x180e}, {0x200b, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
// East Asian wide characters and emoji.
constexpr CodeRange kWide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},
    {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f5},   {0x26fa, 0x26fd},
    {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},   {0x274c, 0x274e},
    {0x2753, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27bf},   {0x2b1b, 0x2b1c},
    {0x2b50, 0x2b55},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97f},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6},   {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f19a},
    {0x1f200, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7ff}, {0x1f90c, 0x1faff},
    {0x20000, 0x3fffd}};

template <std::size_t N>
bool is_in(const CodeRange (&ranges)[N], char32_t point) {
  return std::any_of(std::begin(ranges), std::end(ranges), [&](const CodeRange& range) {
    return point >= range.first && point <= range.second;
  });
}

// Returns the code point of a valid UTF-8 character.
char32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  char32_t point = first & (0xffU >> (character.size() + 1));
  for (const char byte : character.substr(1))
    point = point << 6 | (static_cast<unsigned char>(byte) & 0x3fU);
  return point;
}

// Returns false if terminals may differ in the number of columns.
bool has_sure_width(std::string_view glyph) {
  if (glyph.size() == 1) return true;
  if (character_bytes(glyph) != glyph.size()) return false;
  const char32_t point = code_point(glyph);
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
    const char32_t point = bytes == 0 ? 0 : code_point(character);
    if (point == 0 || (!unicode && point > 0x7e) || is_in(kInvisible, point)) {
      glyphs.push_back({"?", 1});
    } else if (is_in(kCombining, point)) {
      if (glyphs.empty()) glyphs.push_back({" ", 1});
      std::string& before = glyphs.back().text;
      if (before.size() + bytes <= kMaxGlyphBytes) before += character;
    } else {
      glyphs.push_back({std::string(character), is_in(kWide, point) ? 2 : 1});
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
