// SPDX-License-Identifier: MIT
// Draws and writes the sheet of test images, scaled by integer factors (nearest neighbor). Each has
// a border and a caption, green if the prediction is right, red if it is wrong.
#include "plot/image_sheet.h"

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif
#include <stb/stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "plot/bitmap_font.h"
#include "tensorgrad/data/files.h"

namespace tensorgrad::cli {
namespace {

struct Color {
  std::uint8_t r, g, b;
};

constexpr Color kPaper{255, 255, 255};
constexpr Color kInk{33, 37, 41};
constexpr Color kMutedColor{108, 117, 125};
constexpr Color kRightColor{24, 128, 56};
constexpr Color kWrongColor{200, 30, 45};

constexpr int kShownSize = 168;  // images are enlarged to about this size
constexpr int kBorder = 6;
constexpr int kGap = 10;  // between tiles and at the edges
constexpr int kTextScale = 2;
constexpr int kLine = (kGlyphHeight + 2) * kTextScale;
constexpr int kTitleScale = 3;
constexpr int kTitleHeight = (kGlyphHeight + 5) * kTitleScale;
constexpr std::int64_t kMaxPixels = 100'000'000;

// Sizes on the sheet, in pixels.
struct Layout {
  int scale = 1;
  int image_width = 0;
  int image_height = 0;
  int tile_width = 0;
  int tile_height = 0;
  int columns = 1;
  int top = 0;  // y of the first row of tiles
};

void check(const ImageSheet& sheet) {
  if (sheet.images.empty()) throw std::invalid_argument("image sheet: no images");
  if (sheet.channels != 1 && sheet.channels != 3) {
    throw std::invalid_argument(
        fmt::format("image sheet: expected 1 or 3 channels, got {}", sheet.channels));
  }
  if (sheet.width < 1 || sheet.height < 1 || sheet.columns < 1 || sheet.width > 10'000 ||
      sheet.height > 10'000) {
    throw std::invalid_argument(
        fmt::format("image sheet: invalid size: images of {}x{} in {} columns", sheet.width,
                    sheet.height, sheet.columns));
  }
  const auto bytes = static_cast<std::size_t>(sheet.width) *
                     static_cast<std::size_t>(sheet.height) *
                     static_cast<std::size_t>(sheet.channels);
  for (const SheetImage& image : sheet.images) {
    if (image.pixels.size() != bytes) {
      throw std::invalid_argument(fmt::format("image sheet: an image has {} bytes; expected {}",
                                              image.pixels.size(), bytes));
    }
  }
}

Layout layout_of(const ImageSheet& sheet) {
  Layout layout;
  layout.scale = std::max(1, kShownSize / std::max(sheet.width, sheet.height));
  layout.image_width = sheet.width * layout.scale;
  layout.image_height = sheet.height * layout.scale;
  // Narrow images have room for a caption of about ten letters.
  layout.tile_width = std::max(layout.image_width + 2 * kBorder, 11 * kGlyphAdvance * kTextScale);
  layout.tile_height = layout.image_height + 2 * kBorder + 2 * kLine + kGap;
  layout.columns = std::min(sheet.columns, static_cast<int>(sheet.images.size()));
  layout.top = sheet.title.empty() ? kGap : kTitleHeight;
  return layout;
}

void fill(Picture& picture, int x, int y, int width, int height, Color color) {
  for (int row = std::max(y, 0); row < std::min(y + height, picture.height); ++row) {
    for (int column = std::max(x, 0); column < std::min(x + width, picture.width); ++column) {
      const auto at = 3 * (static_cast<std::size_t>(row) * static_cast<std::size_t>(picture.width) +
                           static_cast<std::size_t>(column));
      picture.rgb[at] = color.r;
      picture.rgb[at + 1] = color.g;
      picture.rgb[at + 2] = color.b;
    }
  }
}

// Draws text up to `width` pixels; longer text is cut and ends with "..".
void draw_text(Picture& picture, int x, int y, int width, int scale, std::string text,
               Color color) {
  const auto fits = static_cast<std::size_t>(std::max(width / (kGlyphAdvance * scale), 2));
  if (text.size() > fits) text = text.substr(0, fits - 2) + "..";
  for (const char c : text) {
    for (int row = 0; row < kGlyphHeight; ++row) {
      for (int column = 0; column < kGlyphWidth; ++column) {
        if (glyph_dot(c, column, row)) {
          fill(picture, x + column * scale, y + row * scale, scale, scale, color);
        }
      }
    }
    x += kGlyphAdvance * scale;
  }
}

void draw_image(Picture& picture, int x, int y, const ImageSheet& sheet, const SheetImage& image,
                int scale) {
  const auto channels = static_cast<std::size_t>(sheet.channels);
  std::size_t at = 0;
  for (int row = 0; row < sheet.height; ++row) {
    for (int column = 0; column < sheet.width; ++column, at += channels) {
      const std::uint8_t* p = &image.pixels[at];
      const Color color = channels == 1 ? Color{p[0], p[0], p[0]} : Color{p[0], p[1], p[2]};
      fill(picture, x + column * scale, y + row * scale, scale, scale, color);
    }
  }
}

// Returns a caption such as "Ankle boot 97%". If it is too long, the name is cut.
std::string caption(const SheetImage& image, int width) {
  const double p = std::isfinite(image.probability) ? std::clamp(image.probability, 0.0, 1.0) : 0.0;
  const std::string percent = fmt::format(" {}%", static_cast<int>(std::floor(p * 100 + 0.5)));
  const auto fits = static_cast<std::size_t>(width / (kGlyphAdvance * kTextScale));
  std::string name = drawable(image.predicted);
  const std::size_t room = fits > percent.size() + 2 ? fits - percent.size() : 2;
  if (name.size() > room) name = name.substr(0, room - 2) + "..";
  return name + percent;
}

void draw_tile(Picture& picture, int x, int y, const ImageSheet& sheet, const SheetImage& image,
               const Layout& layout) {
  const bool known = !image.actual.empty();
  const bool right = known && image.actual == image.predicted;
  const Color color = !known ? kInk : right ? kRightColor : kWrongColor;
  fill(picture, x, y, layout.image_width + 2 * kBorder, layout.image_height + 2 * kBorder, color);
  draw_image(picture, x + kBorder, y + kBorder, sheet, image, layout.scale);
  const int text_y = y + layout.image_height + 2 * kBorder + 3 * kTextScale;
  draw_text(picture, x, text_y, layout.tile_width, kTextScale, caption(image, layout.tile_width),
            color);
  if (known) {
    const std::string truth = right ? "right" : "is " + drawable(image.actual);
    draw_text(picture, x, text_y + kLine, layout.tile_width, kTextScale, truth, kMutedColor);
  }
}

}  // namespace

Picture draw_sheet(const ImageSheet& sheet) {
  check(sheet);
  const Layout layout = layout_of(sheet);
  const auto count = static_cast<std::int64_t>(sheet.images.size());
  const std::int64_t rows = (count + layout.columns - 1) / layout.columns;
  const std::int64_t width = std::int64_t{layout.columns} * (layout.tile_width + kGap) + kGap;
  const std::int64_t height = layout.top + rows * (layout.tile_height + kGap);
  if (width > kMaxPixels / height) {
    throw std::invalid_argument(
        fmt::format("image sheet: too large: {} images need {}x{} pixels", count, width, height));
  }
  Picture picture;
  picture.width = static_cast<int>(width);
  picture.height = static_cast<int>(height);
  picture.rgb.resize(static_cast<std::size_t>(3 * width * height));
  fill(picture, 0, 0, picture.width, picture.height, kPaper);
  if (!sheet.title.empty()) {
    draw_text(picture, kGap, 3 * kTitleScale, picture.width - 2 * kGap, kTitleScale,
              drawable(sheet.title), kInk);
  }
  for (std::size_t i = 0; i < sheet.images.size(); ++i) {
    const int column = static_cast<int>(i) % layout.columns;
    const int row = static_cast<int>(i) / layout.columns;
    draw_tile(picture, kGap + column * (layout.tile_width + kGap),
              layout.top + row * (layout.tile_height + kGap), sheet, sheet.images[i], layout);
  }
  return picture;
}

std::vector<std::byte> encode_png(const Picture& picture) {
  std::vector<std::byte> bytes;
  const auto append = [](void* context, void* data, int size) {
    const auto* const begin = static_cast<const std::byte*>(data);
    auto* const out = static_cast<std::vector<std::byte>*>(context);
    out->insert(out->end(), begin, begin + size);
  };
  if (stbi_write_png_to_func(append, &bytes, picture.width, picture.height, 3, picture.rgb.data(),
                             3 * picture.width) == 0) {
    throw std::runtime_error("image sheet: PNG encoding failed");
  }
  return bytes;
}

void write_sheet(const std::string& path, const ImageSheet& sheet) {
  write_file_atomically(path, encode_png(draw_sheet(sheet)));
}

}  // namespace tensorgrad::cli
