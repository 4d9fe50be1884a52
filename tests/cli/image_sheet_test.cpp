// SPDX-License-Identifier: MIT
// The sheet of images: a PNG of the right size and colors, and its bitmap font.
#include "plot/image_sheet.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <stdexcept>

#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#endif
#include <stb/stb_image.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include "plot/bitmap_font.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

using Rgb = std::array<int, 3>;

Rgb pixel(const Picture& picture, int x, int y) {
  const auto at = std::size_t{3} * static_cast<std::size_t>(y * picture.width + x);
  return {picture.rgb.at(at), picture.rgb.at(at + 1), picture.rgb.at(at + 2)};
}

bool has_color(const Picture& picture, const Rgb& color) {
  for (std::size_t i = 0; i + 2 < picture.rgb.size(); i += 3) {
    if (picture.rgb[i] == color[0] && picture.rgb[i + 1] == color[1] &&
        picture.rgb[i + 2] == color[2]) {
      return true;
    }
  }
  return false;
}

constexpr Rgb kGreen = {24, 128, 56};
constexpr Rgb kRed = {200, 30, 45};

ImageSheet sheet_of(std::size_t count, const std::vector<std::uint8_t>& pixels) {
  ImageSheet sheet;
  sheet.title = "ten classes";
  sheet.columns = 4;
  for (std::size_t i = 0; i < count; ++i) sheet.images.push_back({pixels, "cat", "cat", 0.5});
  return sheet;
}

TEST(ImageSheet, file_decodes_to_the_drawn_image) {
  const std::vector<std::uint8_t> grey(28 * 28, 77);
  ImageSheet sheet = sheet_of(6, grey);
  sheet.images[5].predicted = "dog";
  const Picture picture = draw_sheet(sheet);
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tg_sheet_" + std::to_string(::getpid()) + ".png"))
          .string();
  write_sheet(path, sheet);
  const std::vector<std::byte> bytes = read_file(path);
  std::filesystem::remove(path);
  int width = 0;
  int height = 0;
  int channels = 0;
  stbi_uc* const data =
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()),
                            static_cast<int>(bytes.size()), &width, &height, &channels, 3);
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(width, picture.width);
  EXPECT_EQ(height, picture.height);
  EXPECT_EQ(channels, 3);
  EXPECT_TRUE(std::equal(picture.rgb.begin(), picture.rgb.end(), data));
  stbi_image_free(data);
  // Four tiles of 180 pixels (28 * 6 and the border) with gaps; two rows and the title.
  EXPECT_EQ(width, 4 * 190 + 10);
  EXPECT_GT(height, 2 * 180);
}

TEST(ImageSheet, green_is_right_and_red_is_wrong) {
  const std::vector<std::uint8_t> grey(28 * 28, 77);
  ImageSheet sheet = sheet_of(1, grey);
  Picture picture = draw_sheet(sheet);
  EXPECT_TRUE(has_color(picture, kGreen));
  EXPECT_FALSE(has_color(picture, kRed));
  EXPECT_TRUE(has_color(picture, {77, 77, 77}));
  EXPECT_EQ(pixel(picture, 0, 0), (Rgb{255, 255, 255}));
  sheet.images[0].predicted = "dog";
  picture = draw_sheet(sheet);
  EXPECT_FALSE(has_color(picture, kGreen));
  EXPECT_TRUE(has_color(picture, kRed));
  sheet.images[0].actual = "";
  picture = draw_sheet(sheet);
  EXPECT_FALSE(has_color(picture, kGreen));
  EXPECT_FALSE(has_color(picture, kRed));
}

TEST(ImageSheet, colour_images_keep_their_colours_and_places) {
  const std::vector<std::uint8_t> rgb = {250, 1, 2, 3, 240, 5, 6, 7, 230, 9, 10, 11};
  ImageSheet sheet = sheet_of(1, rgb);
  sheet.title = "";
  sheet.height = sheet.width = 2;
  sheet.channels = 3;
  const Picture picture = draw_sheet(sheet);
  // Images begin at 10 + 6 and are scaled by 84.
  EXPECT_EQ(pixel(picture, 16, 16), (Rgb{250, 1, 2}));
  EXPECT_EQ(pixel(picture, 16 + 84, 16), (Rgb{3, 240, 5}));
  EXPECT_EQ(pixel(picture, 16 + 83, 16 + 84), (Rgb{6, 7, 230}));
  EXPECT_EQ(pixel(picture, 16 + 167, 16 + 167), (Rgb{9, 10, 11}));
}

TEST(ImageSheet, takes_any_name_and_probability) {
  const std::vector<std::uint8_t> grey(28 * 28);
  for (const double p : {0.0, 1.0, -5.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    ImageSheet sheet = sheet_of(2, grey);
    sheet.title = std::string(500, 'W');
    sheet.images[0] = {grey, std::string(100, 'x'), "\xff\xc3\xa4\n", p};
    sheet.images[1] = {grey, "", "", p};
    EXPECT_GT(draw_sheet(sheet).width, 0);
  }
}

TEST(ImageSheet, large_images_are_not_enlarged) {
  const std::vector<std::uint8_t> grey(300 * 200);
  ImageSheet sheet = sheet_of(1, grey);
  sheet.width = 300;
  sheet.height = 200;
  EXPECT_EQ(draw_sheet(sheet).width, 300 + 12 + 20);
}

TEST(ImageSheet, mismatched_images_are_rejected) {
  const std::vector<std::uint8_t> grey(28 * 28);
  EXPECT_THROW(draw_sheet({}), std::invalid_argument);
  ImageSheet sheet = sheet_of(1, grey);
  sheet.channels = 3;
  EXPECT_THROW(draw_sheet(sheet), std::invalid_argument);
  sheet.channels = 2;
  EXPECT_THROW(draw_sheet(sheet), std::invalid_argument);
  sheet = sheet_of(1, grey);
  sheet.columns = 0;
  EXPECT_THROW(draw_sheet(sheet), std::invalid_argument);
  sheet = sheet_of(5000, grey);
  EXPECT_THROW(draw_sheet(sheet), std::invalid_argument);
  EXPECT_THROW(write_sheet("/no/such/folder/x.png", sheet_of(1, grey)), IoError);
}

TEST(BitmapFont, every_character_has_dots_of_its_own) {
  const auto dots = [](char c) {
    std::string out;
    for (int y = 0; y < kGlyphHeight; ++y) {
      for (int x = 0; x < kGlyphWidth; ++x) out += glyph_dot(c, x, y) ? '#' : '.';
    }
    return out;
  };
  std::vector<std::string> all;
  for (char c = ' '; c < 127; ++c) all.push_back(dots(c));
  EXPECT_EQ(all[0].find('#'), std::string::npos);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_NE(all[i].find('#'), std::string::npos) << i;
  EXPECT_EQ(dots('T'), "#####..#....#....#....#....#....#............");
  all.push_back(dots('\n'));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(BitmapFont, tails_hang_below_the_line_on_which_letters_stand) {
  constexpr int kBaseLine = 6;
  const auto reaches = [](char c, int from) {
    for (int y = from; y < kGlyphHeight; ++y) {
      for (int x = 0; x < kGlyphWidth; ++x) {
        if (glyph_dot(c, x, y)) return true;
      }
    }
    return false;
  };
  const std::string tailed = "gjpqy,;_";
  for (char c = '!'; c < 127; ++c) {
    EXPECT_EQ(reaches(c, kBaseLine + 1), tailed.find(c) != std::string::npos) << c;
  }
  for (const char c : {'g', 'p', 'q', 'y'}) {  // bodies as large as that of o
    EXPECT_FALSE(glyph_dot(c, 0, 1)) << c;
    EXPECT_TRUE(glyph_dot(c, 0, 3) && glyph_dot(c, 4, 5)) << c;
  }
}

TEST(BitmapFont, other_characters_become_one_box_each) {
  EXPECT_EQ(drawable("a\xc3\xa4\xe2\x82\xac z\n"), "a\x7f\x7f z\x7f");
}

}  // namespace
}  // namespace tensorgrad::cli
