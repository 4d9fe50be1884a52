// SPDX-License-Identifier: MIT
// A PNG sheet of images in a grid, each with the class a model predicted and the true one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tensorgrad::cli {

struct SheetImage {
  std::span<const std::uint8_t> pixels;  // [height, width, channels], as in ImageSheet
  std::string predicted;
  std::string actual;        // empty: not known, then the image is neither right nor wrong
  double probability = 0.0;  // of the prediction, 0 to 1
};

struct ImageSheet {
  std::string title;  // may be empty
  int height = 28;
  int width = 28;
  int channels = 1;  // 1 grey, 3 RGB
  int columns = 8;
  std::vector<SheetImage> images;
};

// An image in memory, RGB.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;  // [height, width, 3]
};

// Draws the sheet. std::invalid_argument if sizes do not fit, there is no image, or the sheet would
// exceed 100 megapixels.
Picture draw_sheet(const ImageSheet& sheet);

std::vector<std::byte> encode_png(const Picture& picture);

// Both, written atomically.
void write_sheet(const std::string& path, const ImageSheet& sheet);

}  // namespace tensorgrad::cli
