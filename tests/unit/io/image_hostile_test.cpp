// SPDX-License-Identifier: MIT
// Damaged, truncated and malicious images: reading throws, and never takes more memory than the
// pixels.
#include <gtest/gtest.h>

#include <zlib.h>

#include "io_test_util.h"
#include "support/pictures.h"
#include "support/source_path.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/data/images.h"

namespace tensorgrad {
namespace {

using test::as_bytes;
using test::get_file;
using test::io_error_of;
using test::mutated;
using test::TestRandom;
using testing::deflated;
using testing::plain_png;
using testing::png_chunk;
using testing::png_header;
using testing::png_of;

const std::string kPngStart = "\x89PNG\r\n\x1a\n";
const std::string kPngEnd = png_chunk("IEND", "");

std::string picture_error_of(const std::string& text) {
  return io_error_of([&] { read_image({as_bytes(text), "p"}, {.channels = 0}); });
}

std::string hostile_fixture(const std::string& name) {
  return get_file(test::source_path("tests/unit/io/fixtures/" + name));
}

std::vector<std::string> good_pictures() {
  std::vector<std::string> all = {
      plain_png(9, 7, 3), plain_png(30, 2, 1),
      png_of(png_header(3, 2, 8, 3), 3, "abcdef", png_chunk("PLTE", std::string(768, 'p')))};
  for (const char* const name : {"colour.jpg", "grey.jpg", "progressive.jpg", "cmyk.jpg"}) {
    all.push_back(hostile_fixture(name));
  }
  return all;
}

TEST(ImageHostile, cut_off_anywhere_is_an_error) {
  for (const std::string& good : good_pictures()) {
    ASSERT_EQ(picture_error_of(good), "no error");
    for (std::size_t size = 0; size < good.size(); ++size) {
      const std::string error = picture_error_of(good.substr(0, size));
      EXPECT_TRUE(error.starts_with("p: PNG truncated at byte " + std::to_string(size) + ": ") ||
                  error.starts_with("p: JPEG truncated at byte " + std::to_string(size) + ": ") ||
                  (size < 8 && error.starts_with("p: begins with ")))
          << size << ": " << error;
    }
  }
  EXPECT_EQ(picture_error_of(plain_png(9, 7, 3).substr(0, 45)),
            "p: PNG truncated at byte 45: expected 11 more bytes of chunk \"IDAT\"");
}

TEST(ImageHostile, a_changed_byte_of_a_png_is_an_error) {
  const std::string good = plain_png(9, 7, 3);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int bit : {1, 0x20, 0x80}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ bit);
      EXPECT_NE(picture_error_of(bad), "no error") << at;
    }
  }
}

// A damaged image is an error, or has the size that its header declares.
void expect_picture_or_error(const std::string& text) {
  try {
    const Image image = read_image({as_bytes(text), "p"}, {.max_bytes = 1 << 22});
    EXPECT_EQ(image.pixels.size(), static_cast<std::size_t>(image.height * image.width * 3));
  } catch (const IoError& error) {
    EXPECT_TRUE(error.message().starts_with("p: ")) << error.message();
  }
}

TEST(ImageHostile, a_changed_byte_of_a_jpeg_does_no_harm) {
  for (const char* const name : {"colour.jpg", "progressive.jpg", "cmyk.jpg"}) {
    const std::string good = hostile_fixture(name);
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (const int value : {0, 0xff, good[at] ^ 1, good[at] ^ 0x10, good[at] ^ 0x80}) {
        std::string bad = good;
        bad[at] = static_cast<char>(value);
        expect_picture_or_error(bad);
      }
    }
  }
}

TEST(ImageHostile, random_damage_does_no_harm) {
  TestRandom random(3);
  for (const std::string& good : good_pictures()) {
    for (int i = 0; i < 500; ++i) expect_picture_or_error(mutated(good, random));
  }
}

// Checksums do not protect against crafted files.
TEST(ImageHostile, random_data_with_right_checksums_does_no_harm) {
  TestRandom random(4);
  for (int i = 0; i < 500; ++i) {
    std::string data = deflated(std::string(9 * 7 * 3, static_cast<char>(i)));
    data = mutated(data, random);
    const int depth = 1 << random.below(6);
    const int colour = static_cast<int>(random.below(8));
    expect_picture_or_error(kPngStart + png_header(9, 7, depth, colour) +
                            png_chunk("PLTE", std::string(3 * random.below(260), 'x')) +
                            png_chunk("IDAT", data) + kPngEnd);
  }
}

TEST(ImageHostile, bad_compressed_data_is_an_error) {
  const auto error = [](const std::string& data) {
    return picture_error_of(kPngStart + png_header(2, 2, 8, 0) + png_chunk("IDAT", data) + kPngEnd);
  };
  EXPECT_EQ(error(deflated(std::string(6, '\0'))), "no error");
  EXPECT_EQ(error(deflated(std::string(5, '\0'))), "p: damaged PNG of [2,2,1]: not enough pixels");
  EXPECT_EQ(error(deflated(std::string(6, '\5'))), "p: damaged PNG of [2,2,1]: invalid filter");
  EXPECT_EQ(error("nonsense"), "p: damaged PNG of [2,2,1]: bad zlib header");
  EXPECT_EQ(error("x\x9c\xff\xff\xff"), "p: damaged PNG of [2,2,1]: it cannot be decoded");
}

TEST(ImageHostile, data_that_inflate_without_end_are_an_error) {
  const std::string data = deflated(std::string(std::size_t{64} << 20, '\0'));
  EXPECT_LT(data.size(), 100'000U);
  EXPECT_EQ(
      picture_error_of(kPngStart + png_header(1, 1, 8, 0) + png_chunk("IDAT", data) + kPngEnd),
      "p: damaged PNG of [1,1,1]: decoding takes more memory than its size allows");
}

TEST(ImageHostile, colours_that_a_palette_lacks_are_black) {
  const std::string text =
      png_of(png_header(3, 1, 8, 3), 3, std::string("\0\1\xff", 3), png_chunk("PLTE", "RGB"));
  const Image image = read_image({as_bytes(text), "p"});
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{'R', 'G', 'B', 0, 0, 0, 0, 0, 0}));
}

TEST(ImageHostile, sizes_are_checked_before_allocation) {
  const auto png = [](std::uint32_t width, std::uint32_t height) {
    return picture_error_of(kPngStart + png_header(width, height, 8, 2) + png_chunk("IDAT", "x") +
                            kPngEnd);
  };
  EXPECT_EQ(png(65'535, 65'535),
            "p: an image of [65535,65535,3] takes 12884508675 bytes; at most 268435456 allowed");
  EXPECT_EQ(png(65'536, 1),
            "p: damaged PNG: 65536x1 pixels (expected 1 to 65535 per side) at byte 8");
  EXPECT_EQ(png(1, 0xffffffff),
            "p: damaged PNG: 1x4294967295 pixels (expected 1 to 65535 per side) at byte 8");
  EXPECT_EQ(png(0, 3), "p: damaged PNG: 0x3 pixels (expected 1 to 65535 per side) at byte 8");
  std::string jpeg = hostile_fixture("colour.jpg");
  const std::size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(picture_error_of(jpeg),
            "p: an image of [65535,65535,3] takes 12884508675 bytes; at most 268435456 allowed");
}

TEST(ImageHostile, chunks_that_do_not_fit_are_errors) {
  const std::string header = png_header(1, 1, 8, 0);
  const std::string data = png_chunk("IDAT", deflated(std::string(2, '\0')));
  EXPECT_EQ(picture_error_of(kPngStart + data + kPngEnd),
            "p: damaged PNG: chunk \"IDAT\" before IHDR at byte 8");
  EXPECT_EQ(picture_error_of(kPngStart + header + header + data + kPngEnd),
            "p: damaged PNG: second chunk \"IHDR\" at byte 33");
  EXPECT_EQ(picture_error_of(kPngStart + png_chunk("IHDR", "short") + data + kPngEnd),
            "p: damaged PNG: chunk \"IHDR\" of 5 bytes at byte 8");
  EXPECT_EQ(picture_error_of(kPngStart + header + png_chunk("WHAT", "") + data + kPngEnd),
            "p: damaged PNG: unknown chunk \"WHAT\" at byte 33");
  EXPECT_EQ(picture_error_of(kPngStart + header + kPngEnd), "p: damaged PNG of [1,1,1]: no IDAT");
  std::string changed = data;
  changed[10] ^= 1;
  EXPECT_EQ(picture_error_of(kPngStart + header + changed + kPngEnd),
            "p: damaged PNG: chunk \"IDAT\" with a wrong checksum at byte 33");
}

// Returns a JPEG segment: marker, length and data.
std::string segment(int marker, const std::string& data) {
  const std::size_t length = data.size() + 2;
  return std::string("\xff") + static_cast<char>(marker) + static_cast<char>(length >> 8) +
         static_cast<char>(length & 255) + data;
}

TEST(ImageHostile, segments_that_do_not_fit_are_errors) {
  const std::string good = hostile_fixture("grey.jpg");
  const std::string rest = good.substr(2);
  const auto with = [&](const std::string& more) {
    return picture_error_of("\xff\xd8" + more + rest);
  };
  EXPECT_EQ(with(segment(0xfe, "a comment")), "no error");
  EXPECT_EQ(with("\xff\xff\xff"), "no error");
  EXPECT_EQ(with("xx"), "p: damaged JPEG: no marker at byte 2");
  EXPECT_EQ(with(std::string("\xff\xfe\0\1", 4)), "p: damaged JPEG: segment of 1 bytes at byte 2");
  EXPECT_EQ(with("\xff\xd9"), "p: damaged JPEG: end without a scan at byte 2");
  EXPECT_EQ(with(segment(0xda, "scan")), "p: damaged JPEG: scan before a frame at byte 2");
  EXPECT_EQ(with(segment(0xc0, "x")), "p: damaged JPEG: frame of 1 bytes at byte 2");
  EXPECT_EQ(
      with(segment(0xc9, "frame....")),
      "p: damaged JPEG: frame of type 9 (expected 0 to 2, baseline to progressive) at byte 2");
  EXPECT_TRUE(with(segment(0xc0, "........")).starts_with("p: damaged JPEG: second frame at byte"));
}

TEST(ImageHostile, huffman_tables_with_too_many_codes_are_errors) {
  const std::string rest = hostile_fixture("grey.jpg").substr(2);
  const auto with = [&](const std::string& table) {
    return picture_error_of("\xff\xd8" + segment(0xc4, table) + rest);
  };
  const std::string table = std::string("\x13") + std::string(15, '\0');
  EXPECT_EQ(with(table + "\x02" + "ab"), "no error");
  EXPECT_EQ(with(table + "\x02" + "abc"),
            "p: damaged JPEG: Huffman table of 0 codes in 1 bytes at byte 2");
  EXPECT_EQ(with(table + "\x02" + "a"),
            "p: damaged JPEG: Huffman table of 2 codes in 18 bytes at byte 2");
  EXPECT_EQ(with(std::string("\x13") + std::string(16, '\x11') + std::string(272, 'x')),
            "p: damaged JPEG: Huffman table of 272 codes in 289 bytes at byte 2");
}

TEST(ImageHostile, scans_without_end_are_an_error) {
  const std::string good = hostile_fixture("progressive.jpg");
  const std::size_t last = good.rfind("\xff\xda");
  std::string many = good.substr(0, last);
  for (int i = 0; i < 100; ++i) many += good.substr(last, good.size() - 2 - last);
  many += good.substr(good.size() - 2);
  const std::string error = picture_error_of(many);
  EXPECT_TRUE(error.starts_with("p: damaged JPEG: scan 101 (expected at most 100) at byte "))
      << error;
}

// The file is 40 kB of compressed zeros.
TEST(ImageHostile, few_bytes_for_many_pixels_are_an_error) {
  const std::string png = testing::plain_png(5000, 5000, 3);
  const auto bytes = std::as_bytes(std::span(png));
  const std::string error = io_error_of([&] { read_image({bytes, "f.png"}); });
  EXPECT_EQ(error,
            "f.png: an image of [5000,5000,3] takes 75000000 bytes; at most 67108864 allowed "
            "for a file of " +
                std::to_string(png.size()) + " bytes (limit: max_expansion)");
  EXPECT_EQ(read_image({bytes, "f.png"}, {.max_expansion = 2000}).pixels.size(), 75000000U);
}

}  // namespace
}  // namespace tensorgrad
