// SPDX-License-Identifier: MIT
// Resizes with integer weights. Each result pixel is a weighted sum with a single division at the
// end.
#include "io/images/image_resize.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "io/images/image_header.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

// The input pixels of a result position along an axis: weights of consecutive pixels from `first`
// on.
struct Taps {
  std::int64_t first = 0;
  std::vector<std::uint32_t> weights;
};

// Returns the weights of the pixels in the area that position `at` of `to` covers. In the units
// used, a pixel has length `to` and a result position length `from`.
Taps area_taps(std::int64_t at, std::int64_t from, std::int64_t to) {
  const std::int64_t begin = at * from;
  const std::int64_t end = begin + from;
  Taps taps{.first = begin / to, .weights = {}};
  for (std::int64_t pixel = taps.first; pixel * to < end; ++pixel) {
    const std::int64_t covered = std::min(end, (pixel + 1) * to) - std::max(begin, pixel * to);
    taps.weights.push_back(static_cast<std::uint32_t>(covered));
  }
  return taps;
}

// Returns the weights of the two pixels around the center of position `at`,
//   (at + 1/2) * from / to - 1/2,
// in units of which adjacent pixels are 2 * to apart. Clamps to the first and last pixel.
Taps line_taps(std::int64_t at, std::int64_t from, std::int64_t to) {
  const std::int64_t parts = 2 * to;
  const std::int64_t centre =
      std::clamp((2 * at + 1) * from - to, std::int64_t{0}, (from - 1) * parts);
  const std::int64_t first = centre / parts;
  const auto beyond = static_cast<std::uint32_t>(centre % parts);
  Taps taps{.first = first, .weights = {static_cast<std::uint32_t>(parts) - beyond}};
  if (beyond > 0) taps.weights.push_back(beyond);
  return taps;
}

struct Axis {
  std::vector<Taps> places;
  std::uint64_t total = 0;  // sum of the weights of each position
};

Axis axis_taps(std::int64_t from, std::int64_t to) {
  CHECK(from >= 1 && to >= 1 && from <= kMaxImageSide && to <= kMaxImageSide);
  const bool smaller = to < from;
  Axis axis{.places = {}, .total = static_cast<std::uint64_t>(smaller ? from : 2 * to)};
  for (std::int64_t at = 0; at < to; ++at) {
    axis.places.push_back(smaller ? area_taps(at, from, to) : line_taps(at, from, to));
  }
  return axis;
}

}  // namespace

Image resized(const Image& image, std::int64_t height, std::int64_t width) {
  const Axis rows = axis_taps(image.height, height);
  const Axis columns = axis_taps(image.width, width);
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t line = static_cast<std::size_t>(image.width) * channels;
  Image out{.height = height, .width = width, .channels = image.channels};
  out.pixels.reserve(static_cast<std::size_t>(height * width) * channels);
  const std::uint64_t total = rows.total * columns.total;
  std::vector<std::uint32_t> sums(line);  // for each column; at most 255 * 2 * kMaxImageSide
  for (const Taps& row : rows.places) {
    std::fill(sums.begin(), sums.end(), 0);
    const std::uint8_t* pixels = image.pixels.data() + static_cast<std::size_t>(row.first) * line;
    for (const std::uint32_t weight : row.weights) {
      for (std::size_t i = 0; i < line; ++i) sums[i] += weight * pixels[i];
      pixels += line;
    }
    for (const Taps& column : columns.places) {
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const std::uint32_t* sum =
            sums.data() + static_cast<std::size_t>(column.first) * channels + channel;
        std::uint64_t pixel = total / 2;
        for (const std::uint32_t weight : column.weights) {
          pixel += std::uint64_t{weight} * *sum;
          sum += channels;
        }
        out.pixels.push_back(static_cast<std::uint8_t>(pixel / total));
      }
    }
  }
  return out;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
