// SPDX-License-Identifier: MIT
// Checks the chunks of a PNG and the segments of a JPEG. The decoder reads the same segments in
// order, so it only sees data that was checked.
#include "io/images/image_header.h"

#include <algorithm>
#include <string>

#include "io/const_zlib.h"
#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpegMagic = "\xff\xd8";
// Each scan of a progressive JPEG takes the time of a whole image, however short it is.
constexpr int kMaxJpegScans = 100;
constexpr int kMaxCodes = 256;  // of a Huffman table

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint32_t read_big_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

// Reads a file piece by piece.
class ImageCursor {
 public:
  ImageCursor(std::span<const std::byte> bytes, std::string_view name, const char* format)
      : bytes_(bytes), name_(name), format_(format) {}

  [[noreturn]] void fail(std::size_t place, const std::string& what) const {
    throw IoError(std::string(name_) + ": damaged " + format_ + ": " + what + " at byte " +
                  std::to_string(place));
  }

  [[nodiscard]] std::size_t place() const { return place_; }

  std::span<const std::byte> take(std::size_t count, const std::string& what) {
    if (bytes_.size() - place_ < count) {
      throw IoError(std::string(name_) + ": " + format_ + " truncated at byte " +
                    std::to_string(bytes_.size()) + ": expected " +
                    std::to_string(count - (bytes_.size() - place_)) + " more bytes of " + what);
    }
    place_ += count;
    return bytes_.subspan(place_ - count, count);
  }

  std::uint32_t number(std::size_t width, const std::string& what) {
    return read_big_endian(take(width, what));
  }

  // Skips to the next marker: 0xff followed by neither 0 (data), a restart marker nor another 0xff.
  void skip_scan() {
    for (;; ++place_) {
      const auto rest = bytes_.subspan(place_);
      place_ += std::min(text_of(rest).find('\xff'), rest.size());
      if (bytes_.size() - place_ < 2) take(2, "a scan and the end marker");
      const auto next = std::to_integer<unsigned>(bytes_[place_ + 1]);
      if (next != 0 && next != 0xff && (next < 0xd0 || next > 0xd7)) return;
    }
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view name_;
  const char* format_;
  std::size_t place_ = 0;
};

void check_sides(const ImageCursor& in, std::size_t place, const ImageHeader& header) {
  for (const std::int64_t side : {header.height, header.width}) {
    if (side >= 1 && side <= kMaxImageSide) continue;
    in.fail(place, std::to_string(header.width) + "x" + std::to_string(header.height) +
                       " pixels (expected 1 to " + std::to_string(kMaxImageSide) + " per side)");
  }
}

ImageHeader read_png(ImageCursor in) {
  in.take(kPngMagic.size(), "the signature");
  ImageHeader header = {.format = "PNG"};
  for (bool first = true;; first = false) {
    const std::size_t place = in.place();
    const std::uint32_t length = in.number(4, "a chunk");
    const std::span<const std::byte> kind = in.take(4, "a chunk");
    const std::string_view type = text_of(kind);
    const std::string what = "chunk " + in_quotes(type);
    const std::span<const std::byte> data = in.take(length, what);
    const std::uint32_t checksum = in.number(4, what);
    const bool critical = (type[0] & 0x20) == 0;
    if (first != (type == "IHDR")) in.fail(place, first ? what + " before IHDR" : "second " + what);
    if (!critical) continue;
    // The type and the data are contiguous.
    const auto* const start = reinterpret_cast<const Bytef*>(kind.data());
    if (crc32_z(0, start, kind.size() + length) != checksum) {
      in.fail(place, what + " with a wrong checksum");
    }
    if (type == "IEND") return header;
    if (type == "IHDR") {
      if (length != 13) in.fail(place, what + " of " + std::to_string(length) + " bytes");
      header.width = read_big_endian(data.first(4));
      header.height = read_big_endian(data.subspan(4, 4));
      const auto colour = std::to_integer<unsigned>(data[9]);
      header.channels = colour == 0 || colour == 4 ? 1 : 3;
      check_sides(in, place, header);
    } else if (type != "PLTE" && type != "IDAT") {
      in.fail(place, "unknown " + what);
    }
  }
}

void check_huffman_tables(const ImageCursor& in, std::size_t place,
                          std::span<const std::byte> tables) {
  while (!tables.empty()) {
    std::size_t codes = 0;
    for (std::size_t i = 1; i <= 16 && i < tables.size(); ++i) {
      codes += std::to_integer<std::size_t>(tables[i]);
    }
    if (codes > kMaxCodes || tables.size() < 17 + codes) {
      in.fail(place, "Huffman table of " + std::to_string(codes) + " codes in " +
                         std::to_string(tables.size()) + " bytes");
    }
    tables = tables.subspan(17 + codes);
  }
}

void read_frame(const ImageCursor& in, std::size_t place, unsigned marker,
                std::span<const std::byte> frame, ImageHeader& header) {
  if (marker > 0xc2) {
    in.fail(place, "frame of type " + std::to_string(marker - 0xc0) +
                       " (expected 0 to 2, baseline to progressive)");
  }
  if (header.channels != 0) in.fail(place, "second frame");
  if (frame.size() < 6) in.fail(place, "frame of " + std::to_string(frame.size()) + " bytes");
  header.height = read_big_endian(frame.subspan(1, 2));
  header.width = read_big_endian(frame.subspan(3, 2));
  header.channels = frame[5] == std::byte{1} ? 1 : 3;
  check_sides(in, place, header);
}

ImageHeader read_jpeg(ImageCursor in) {
  in.take(kJpegMagic.size(), "the signature");
  ImageHeader header = {.format = "JPEG"};
  for (int scans = 0;;) {
    const std::size_t place = in.place();
    std::uint32_t marker = in.number(1, "a marker");
    if (marker != 0xff) in.fail(place, "no marker");
    while (marker == 0xff) marker = in.number(1, "a marker");
    if (marker == 0xd9) {
      if (scans == 0) in.fail(place, "end without a scan");
      return header;
    }
    const std::uint32_t length = in.number(2, "a segment");
    if (length < 2) in.fail(place, "segment of " + std::to_string(length) + " bytes");
    const std::span<const std::byte> segment = in.take(length - 2, "a segment");
    if (marker == 0xc4) {
      check_huffman_tables(in, place, segment);
    } else if (marker >= 0xc0 && marker <= 0xcf) {
      read_frame(in, place, marker, segment, header);
    } else if (marker == 0xda) {
      if (header.channels == 0) in.fail(place, "scan before a frame");
      if (++scans > kMaxJpegScans) {
        in.fail(place, "scan " + std::to_string(scans) + " (expected at most " +
                           std::to_string(kMaxJpegScans) + ")");
      }
      in.skip_scan();
    }
  }
}

}  // namespace

ImageHeader read_image_header(std::span<const std::byte> bytes, std::string_view name) {
  const std::string_view text = text_of(bytes);
  if (text.starts_with(kPngMagic)) return read_png({bytes, name, "PNG"});
  if (text.starts_with(kJpegMagic)) return read_jpeg({bytes, name, "JPEG"});
  throw IoError(std::string(name) + ": begins with " + in_quotes(text.substr(0, 12)) +
                "; expected a PNG or JPEG image");
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
