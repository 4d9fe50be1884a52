// SPDX-License-Identifier: MIT
// Valid images: kinds of PNG and JPEG, channels, sizes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "io_test_util.h"
#include "support/pictures.h"
#include "support/source_path.h"
#include "tensorgrad/data/images.h"

namespace tensorgrad {
namespace {

using test::as_bytes;
using test::io_error_of;
using test::put_file;
using test::TempDir;
using testing::deflated;
using testing::plain_png;
using testing::png_chunk;
using testing::png_header;
using testing::png_of;
using testing::png_of_pixels;

const std::string kSignature = "\x89PNG\r\n\x1a\n";
using Pixels = std::vector<std::uint8_t>;

Image image_of(const std::string& text, const ImageOptions& options = {.channels = 0}) {
  return read_image({as_bytes(text), "p"}, options);
}

std::string fixture(const std::string& name) {
  return test::source_path("tests/unit/io/fixtures/" + name);
}

std::string bytes_of(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

TEST(Image, png_of_every_kind_of_colour) {
  const std::string six = bytes_of({1, 2, 3, 200, 100, 50});
  EXPECT_EQ(image_of(png_of_pixels(2, 1, 3, six)).pixels, (Pixels{1, 2, 3, 200, 100, 50}));
  EXPECT_EQ(image_of(png_of_pixels(3, 2, 1, six)).pixels, (Pixels{1, 2, 3, 200, 100, 50}));
  // Grey with alpha and colour with alpha; alpha is dropped.
  EXPECT_EQ(image_of(png_of(png_header(1, 3, 8, 4), 2, six)).pixels, (Pixels{1, 3, 100}));
  const Image rgba = image_of(png_of(png_header(1, 1, 8, 6), 4, six.substr(0, 4)));
  EXPECT_EQ(rgba.pixels, (Pixels{1, 2, 3}));
  // A palette of two colours with four bits per pixel.
  const Image palette =
      image_of(png_of(png_header(2, 1, 4, 3), 1, bytes_of({0x10}), png_chunk("PLTE", six)));
  EXPECT_EQ(palette.channels, 3);
  EXPECT_EQ(palette.pixels, (Pixels{200, 100, 50, 1, 2, 3}));
}

TEST(Image, png_of_every_depth) {
  EXPECT_EQ(image_of(png_of(png_header(9, 1, 1, 0), 2, bytes_of({0xa5, 0x80}))).pixels,
            (Pixels{255, 0, 255, 0, 0, 255, 0, 255, 255}));
  EXPECT_EQ(image_of(png_of(png_header(4, 1, 2, 0), 1, bytes_of({0x1b}))).pixels,
            (Pixels{0, 85, 170, 255}));
  EXPECT_EQ(image_of(png_of(png_header(2, 1, 4, 0), 1, bytes_of({0x3f}))).pixels,
            (Pixels{51, 255}));
  EXPECT_EQ(image_of(png_of(png_header(2, 1, 16, 0), 4, bytes_of({7, 255, 8, 0}))).pixels,
            (Pixels{7, 8}));
}

TEST(Image, png_that_is_interlaced) {
  // The passes of 2x2 pixels are the first pixel, the pixel to its right, and the second row.
  const std::string header = png_chunk("IHDR", bytes_of({0, 0, 0, 2, 0, 0, 0, 2, 8, 0, 0, 0, 1}));
  const std::string data = deflated(bytes_of({0, 1, 0, 2, 0, 3, 4}));
  EXPECT_EQ(image_of(kSignature + header + png_chunk("IDAT", data) + png_chunk("IEND", "")).pixels,
            (Pixels{1, 2, 3, 4}));
}

TEST(Image, png_with_chunks_of_other_programs) {
  const std::string rows = bytes_of({9});
  const std::string more = png_chunk("tEXt", "Comment" + std::string(1, '\0') + "hello") +
                           png_chunk("gAMA", rows + rows);
  EXPECT_EQ(image_of(png_of(png_header(1, 1, 8, 0), 1, rows, more)).pixels, (Pixels{9}));
  // Damaged ancillary chunks are ignored.
  std::string damaged = more;
  damaged[10] ^= 1;
  EXPECT_EQ(image_of(png_of(png_header(1, 1, 8, 0), 1, rows, damaged)).pixels, (Pixels{9}));
  EXPECT_EQ(image_of(png_of(png_header(1, 1, 8, 0), 1, rows) + "behind the end").pixels,
            (Pixels{9}));
}

// Returns the largest difference of a channel from the image of fixtures/make_pictures.py.
int distance(const Image& image) {
  int most = 0;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const int rgb[] = {10 + 12 * x, 20 + 15 * y, 200 - 5 * x - 5 * y};
      const int grey = (299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2]) / 1000;
      for (int c = 0; c < image.channels; ++c) {
        const auto at = static_cast<std::size_t>((y * image.width + x) * image.channels + c);
        const int wanted = image.channels == 1 ? grey : rgb[c];
        most = std::max(most, std::abs(image.pixels.at(at) - wanted));
      }
    }
  }
  return most;
}

TEST(Image, jpeg_baseline_progressive_grey_and_of_four_channels) {
  for (const auto& [name, channels, bound] :
       {std::tuple("colour.jpg", 3, 20), std::tuple("progressive.jpg", 3, 6),
        std::tuple("grey.jpg", 1, 3), std::tuple("cmyk.jpg", 3, 6)}) {
    const Image image = read_image(fixture(name), {.channels = 0});
    EXPECT_EQ(image.height, 13) << name;
    EXPECT_EQ(image.width, 19) << name;
    EXPECT_EQ(image.channels, channels) << name;
    EXPECT_EQ(image.pixels.size(), 13U * 19U * static_cast<unsigned>(channels)) << name;
    EXPECT_LE(distance(image), bound) << name;
    EXPECT_LE(distance(read_image(fixture(name), {.channels = 1})), 6) << name;
  }
}

TEST(Image, channels_follow_the_options) {
  const std::string colours = png_of_pixels(2, 1, 3, bytes_of({100, 200, 50, 255, 255, 255}));
  EXPECT_EQ(image_of(colours, {.channels = 1}).pixels, (Pixels{152, 255}));
  EXPECT_EQ(image_of(plain_png(1, 2, 1, 7), {}).pixels, (Pixels{7, 7, 7, 7, 7, 7}));
  EXPECT_EQ(image_of(plain_png(1, 2, 1, 7)).channels, 1);
  EXPECT_EQ(image_of(colours).channels, 3);
}

TEST(Image, smaller_is_the_mean_of_areas) {
  const std::string text = png_of_pixels(3, 2, 1, bytes_of({0, 90, 240, 60, 30, 0}));
  EXPECT_EQ(image_of(text, {.height = 1, .width = 3, .channels = 1}).pixels, (Pixels{30, 60, 120}));
  // Each pixel covers one and a half source pixels:
  //   (0 + 60 + (90 + 30) / 2) / 3
  //   (240 + 0 + (90 + 30) / 2) / 3
  EXPECT_EQ(image_of(text, {.height = 1, .width = 2, .channels = 1}).pixels, (Pixels{40, 100}));
  EXPECT_EQ(image_of(text, {.height = 1, .width = 1, .channels = 1}).pixels, (Pixels{70}));
  const Image same = image_of(text, {.height = 2, .width = 3, .channels = 1});
  EXPECT_EQ(same.pixels, image_of(text).pixels);
}

TEST(Image, larger_lies_between_the_neighbours) {
  const std::string text = png_of_pixels(2, 1, 3, bytes_of({0, 100, 8, 200, 100, 0}));
  const Image wide = image_of(text, {.height = 1, .width = 4});
  EXPECT_EQ(wide.pixels, (Pixels{0, 100, 8, 50, 100, 6, 150, 100, 2, 200, 100, 0}));
  const Image three = image_of(text, {.height = 2, .width = 3});
  EXPECT_EQ(three.pixels,
            (Pixels{0, 100, 8, 100, 100, 4, 200, 100, 0, 0, 100, 8, 100, 100, 4, 200, 100, 0}));
  EXPECT_EQ(image_of(plain_png(1, 1, 1, 77), {.height = 3, .width = 2, .channels = 1}).pixels,
            Pixels(6, 77));
}

TEST(Image, one_axis_may_grow_while_the_other_shrinks) {
  const std::string text = png_of_pixels(1, 2, 1, bytes_of({10, 30}));
  EXPECT_EQ(image_of(text, {.height = 1, .width = 3, .channels = 1}).pixels, (Pixels{20, 20, 20}));
  const Image white = image_of(plain_png(65'535, 1, 1, 255), {.height = 7, .width = 3});
  EXPECT_EQ(white.pixels, Pixels(63, 255));
}

TEST(Image, sizes_and_channels_that_cannot_be_are_errors) {
  const auto error = [](const ImageOptions& options) {
    return io_error_of([&] { image_of(plain_png(1, 1, 1), options); });
  };
  EXPECT_EQ(error({.height = 3}),
            "p: height and width must both be 1 to 65535 or both 0, got 3 and 0");
  EXPECT_EQ(error({.height = -1, .width = 2}),
            "p: height and width must both be 1 to 65535 or both 0, got -1 and 2");
  EXPECT_EQ(error({.height = 2, .width = 65'536}),
            "p: height and width must both be 1 to 65535 or both 0, got 2 and 65536");
  EXPECT_EQ(error({.channels = 2}), "p: channels must be 1, 3 or 0 (as in the file), got 2");
}

TEST(Image, more_bytes_than_allowed_are_an_error) {
  const auto error = [](const ImageOptions& options) {
    return io_error_of([&] { image_of(plain_png(30, 20, 1), options); });
  };
  EXPECT_EQ(error({.channels = 1, .max_bytes = 600}), "no error");
  EXPECT_EQ(error({.channels = 1, .max_bytes = 599}),
            "p: an image of [20,30,1] takes 600 bytes; at most 599 allowed");
  EXPECT_EQ(error({.height = 40, .width = 40, .channels = 1, .max_bytes = 600}),
            "p: an image of [40,40,1] takes 1600 bytes; at most 600 allowed");
  EXPECT_EQ(error({.height = 65'535, .width = 65'535}),
            "p: an image of [65535,65535,3] takes 12884508675 bytes; at most 268435456 allowed");
  const TempDir dir;
  put_file(dir / "p.png", plain_png(1, 1, 1) + std::string(1000, 'x'));
  EXPECT_EQ(io_error_of([&] { read_image(dir / "p.png", {.max_bytes = 1000}); }),
            (dir / "p.png") + ": has 1067 bytes; at most 1000 allowed");
}

TEST(Image, error_names_the_format_that_was_found) {
  EXPECT_EQ(io_error_of([] { image_of("GIF89a\x01\x02\x03 and more"); }),
            R"(p: begins with "GIF89a\x01\x02\x03 an"; expected a PNG or JPEG image)");
  EXPECT_EQ(io_error_of([] { image_of(""); }),
            R"(p: begins with ""; expected a PNG or JPEG image)");
  const TempDir dir;
  EXPECT_EQ(io_error_of([&] { read_image(dir / "no.png"); }),
            (dir / "no.png") + ": cannot be opened: no such file or directory");
  EXPECT_EQ(io_error_of([&] { read_image(dir.str()); }),
            dir.str() + ": is a folder; expected a file");
}

}  // namespace
}  // namespace tensorgrad
