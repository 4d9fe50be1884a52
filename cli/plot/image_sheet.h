// SPDX-License-Identifier: MIT
// A PNG sheet: a grid of images, each with its predicted and true class.
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
  std::string actual;        // if empty, unknown: the image is marked neither right nor wrong
  double probability = 0.0;  // of the prediction, 0 to 1
};

struct ImageSheet {
  std::string title;  // may be empty
  int height = 28;
  int width = 28;
  int channels = 1;  // 1: grayscale, 3: RGB
  int columns = 8;
  std::vector<SheetImage> images;
};

// An RGB image in memory.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;  // [height, width, 3]
};

// Returns the drawn sheet. Throws std::invalid_argument if there are no images, if a size or number
// of channels is invalid, or if the sheet would exceed 100 megapixels.
Picture draw_sheet(const ImageSheet& sheet);

// Returns the picture as a PNG file. Throws std::runtime_error if the encoder fails.
std::vector<std::byte> encode_png(const Picture& picture);

// Draws the sheet and writes it to `path` atomically. Throws as draw_sheet(), and IoError if the
// file cannot be written.
void write_sheet(const std::string& path, const ImageSheet& sheet);

}  // namespace tensorgrad::cli
