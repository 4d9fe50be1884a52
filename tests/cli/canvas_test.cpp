// SPDX-License-Identifier: MIT
// Characters and curves on a canvas of character cells.
#include "ui/canvas.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "cli/plain_rows.h"
#include "ui/text_plot.h"

namespace tensorgrad::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string joined_glyphs(std::string_view text, bool unicode) {
  std::string out;
  for (const Glyph& glyph : glyphs_of(text, unicode)) out += glyph.text + "/";
  return out;
}

TEST(Glyphs, have_no_control_characters) {
  EXPECT_EQ(joined_glyphs("a\x1b[m\x7f\n\xc2\x9b", true), "a/?/[/m/?/?/?/");
  EXPECT_EQ(joined_glyphs("\x9b\xff\xe2\x82", true), "?/?/?/?/");  // invalid UTF-8
  EXPECT_EQ(joined_glyphs(std::string_view("\0b", 2), true), "?/b/");
  EXPECT_EQ(joined_glyphs("a\u202eb\u200b\ufeff", true), "a/?/b/?/?/");
  for (unsigned point = 0; point < 0x3000; ++point) {
    std::string text;
    if (point < 0x80) {
      text = {static_cast<char>(point)};
    } else if (point < 0x800) {
      text = {static_cast<char>(0xc0 | point >> 6), static_cast<char>(0x80 | (point & 0x3f))};
    } else {
      text = {static_cast<char>(0xe0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 0x3f)),
              static_cast<char>(0x80 | (point & 0x3f))};
    }
    const std::vector<Glyph> glyphs = glyphs_of("x" + text, true);
    const bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    EXPECT_EQ(control, control && glyphs.back().text == "?") << point;
    EXPECT_EQ(joined_glyphs(text, false), point >= 0x20 && point < 0x7f ? text + "/" : "?/");
  }
}

TEST(Glyphs, count_wide_characters_and_combine_marks) {
  const std::vector<Glyph> glyphs = glyphs_of("e\u0301\u65e5\U0001f600", true);
  ASSERT_EQ(glyphs.size(), 3U);
  EXPECT_EQ(glyphs[0].text, "e\u0301");
  EXPECT_EQ(glyphs[0].columns, 1);
  EXPECT_EQ(glyphs[1].columns, 2);
  EXPECT_EQ(glyphs[2].columns, 2);
  std::string marks = "a";
  for (int i = 0; i < 100; ++i) marks += "\u0301";
  EXPECT_LE(glyphs_of(marks, true)[0].text.size(), 16U);
}

TEST(Canvas, cuts_texts_and_drops_what_is_outside) {
  Canvas canvas(10, 3, true);
  EXPECT_EQ(canvas.text(7, 0, "abc"), 3);
  EXPECT_EQ(canvas.text(2, 1, "abcdefghijkl"), 8);
  EXPECT_EQ(canvas.text(0, 2, "\u65e5\u672c\u8a9e", Ink::kPlain, 5), 5);
  canvas.text(0, 7, "below");
  canvas.text(12, 0, "right of it");
  canvas.set(-1, 0, "x", Ink::kPlain);
  canvas.text_before(10, 2, "end");
  EXPECT_EQ(plain_rows(canvas),
            "       abc\n"
            "  abcdef..\n"
            "\u65e5...  end\n");
}

TEST(Canvas, styles_only_what_is_seen_and_places_after_uncertain_widths) {
  Canvas canvas(20, 1, true);
  canvas.text(0, 0, "key", Ink::kKey);
  canvas.text(5, 0, "\u65e5 a", Ink::kAccent);
  EXPECT_EQ(canvas.row(0, true), "\x1b[0;7mkey\x1b[0m  \x1b[0;38;5;33m\u65e5\x1b[8G a\x1b[0m");
  EXPECT_EQ(canvas.row(0, false), "\x1b[0;7mkey\x1b[0m  \u65e5\x1b[8G a");
}

TEST(Wrapped, breaks_at_spaces_and_within_long_words) {
  EXPECT_THAT(wrapped("to be or not\nthat is", 6, true),
              ElementsAre("to be", "or not", "that", "is"));
  EXPECT_THAT(wrapped("abcdefghij", 4, true), ElementsAre("abcd", "efgh", "ij"));
  EXPECT_THAT(wrapped("a\n\nb", 4, true), ElementsAre("a", "", "b"));
  EXPECT_THAT(wrapped("\u65e5\u672c\u8a9e", 4, true), ElementsAre("\u65e5\u672c", "\u8a9e"));
  EXPECT_TRUE(wrapped("", 4, true).empty());
}

TEST(TextPlot, draws_curves_in_ascii) {
  Canvas canvas(30, 8, false);
  const std::vector<Curve> curves = {{.name = "falls", .x = {0, 10, 20}, .y = {6, 3, 0}},
                                     {.name = "marked", .x = {10, 20}, .y = {4, 5}, .marks = true}};
  draw_curves(canvas, {.x = 0, .y = 0, .columns = 30, .rows = 8}, curves, false);
  EXPECT_EQ(plain_rows(canvas), R"(  |'-..
5 +    '-..          ....---'o
  |        '-.. o-'''
  |            '-.
  |               ''-.
  |                   ''-.
0 +                       ''-.
   0           10           20
)");
}

TEST(TextPlot, draws_curves_in_braille) {
  Canvas canvas(20, 5, true);
  draw_curves(canvas, {.x = 0, .y = 0, .columns = 20, .rows = 5},
              {{.name = "falls", .x = {0, 1000}, .y = {1, 0}}}, false);
  EXPECT_EQ(plain_rows(canvas),
            "  1 \u2524\u2811\u2822\u2884\u2840\n"
            "0.5 \u2524   \u2808\u2811\u2822\u2884\u2840\n"
            "    \u2502       \u2808\u2811\u2822\u2884\u2840\n"
            "  0 \u2524           \u2808\u2811\u2822\u2884\n"
            "     0     500  1000\n");
}

TEST(TextPlot, leaves_out_what_an_axis_cannot_show) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Curve> odd = {
      {.name = "odd", .x = {0, 1, 2, 3, 4}, .y = {NAN, infinity, 1e300, -1, 0}}};
  for (const bool logarithmic : {false, true}) {
    Canvas canvas(30, 8, false);
    draw_curves(canvas, {.x = 0, .y = 0, .columns = 30, .rows = 8}, odd, logarithmic);
    EXPECT_EQ(plain_rows(canvas).find("no values yet") != std::string::npos, logarithmic);
  }
  Canvas canvas(30, 8, false);
  draw_curves(canvas, {.x = 0, .y = 0, .columns = 30, .rows = 8},
              {{.name = "powers", .x = {1, 2, 3}, .y = {0.001, 0.1, 10}}}, true);
  const std::string text = plain_rows(canvas);
  for (const char* const label : {"0.001 +", "0.1 +", "10 +"}) EXPECT_THAT(text, HasSubstr(label));
}

}  // namespace
}  // namespace tensorgrad::cli
