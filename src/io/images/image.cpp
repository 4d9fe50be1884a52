// SPDX-License-Identifier: MIT
// Reads images: checks them (image_header.cpp), decodes them with stb_image, and resizes them if
// requested.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "base/check.h"
#include "io/gzip.h"
#include "io/images/image_header.h"
#include "io/images/image_resize.h"
#include "io/input_file.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/data/images.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

// Limit on a single allocation of the decoder, which does not limit it by the size of the image,
// and whether it was exceeded.
struct DecoderMemory {
  std::size_t most = 0;
  bool refused = false;
};
thread_local DecoderMemory decoder_memory;

// Zeroes memory: for damaged files, the decoder reads memory that it has not written.
void* decoder_grows(void* old, std::size_t old_bytes, std::size_t bytes) {
  if (bytes > decoder_memory.most) {
    decoder_memory.refused = true;
    return nullptr;
  }
  void* const memory = old == nullptr ? std::calloc(bytes, 1) : std::realloc(old, bytes);
  if (memory != nullptr && old != nullptr && bytes > old_bytes) {
    std::memset(static_cast<std::byte*>(memory) + old_bytes, 0, bytes - old_bytes);
  }
  return memory;
}

}  // namespace
}  // namespace tensorgrad::inline TENSORGRAD_ABI::io

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS 65535
#define STBI_ASSERT(condition) CHECK(condition)
#define STBI_MALLOC(bytes) ::tensorgrad::io::decoder_grows(nullptr, 0, bytes)
#define STBI_REALLOC_SIZED(old, old_bytes, bytes) \
  ::tensorgrad::io::decoder_grows(old, old_bytes, bytes)
#define STBI_FREE(memory) std::free(memory)
#include <stb/stb_image.h>

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace io {
namespace {

static_assert(STBI_MAX_DIMENSIONS == kMaxImageSide);

struct FreePixels {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};

std::vector<std::uint8_t> decoded(std::span<const std::byte> bytes, std::string_view name,
                                  const ImageHeader& header, int channels) {
  // Limit for one allocation: an image of 4 channels of 16 bits, rounded up to blocks of 32 and
  // doubled, since buffers grow by doubling; compressed data, also doubled; tables.
  decoder_memory = {
      .most = std::max(static_cast<std::size_t>((header.height + 32) * (header.width + 32)) * 16,
                       2 * bytes.size()) +
              (std::size_t{1} << 16),
      .refused = false};
  stbi__g_failure_reason = nullptr;
  int width = 0;
  int height = 0;
  int ignored = 0;
  const std::unique_ptr<stbi_uc, FreePixels> pixels(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()),
                            static_cast<int>(bytes.size()), &width, &height, &ignored, channels));
  if (pixels == nullptr) {
    const char* const reason = stbi_failure_reason();
    const bool memory = reason != nullptr && std::strcmp(reason, "outofmem") == 0;
    if (memory && !decoder_memory.refused) throw std::bad_alloc();
    throw IoError(std::string(name) + ": damaged " + header.format + " of " +
                  to_string(Shape{header.height, header.width, header.channels}) + ": " +
                  (memory              ? "decoding takes more memory than its size allows"
                   : reason != nullptr ? reason
                                       : "it cannot be decoded"));
  }
  CHECK(width == header.width && height == header.height);
  return {pixels.get(), pixels.get() + header.height * header.width * channels};
}

void check_image_options(const ImageOptions& options, std::string_view name) {
  const bool kept = options.height == 0 && options.width == 0;
  const auto fits = [](std::int64_t side) { return side >= 1 && side <= kMaxImageSide; };
  if (!kept && !(fits(options.height) && fits(options.width))) {
    throw IoError(std::string(name) + ": height and width must both be 1 to " +
                  std::to_string(kMaxImageSide) + " or both 0, got " +
                  std::to_string(options.height) + " and " + std::to_string(options.width));
  }
  if (options.channels != 0 && options.channels != 1 && options.channels != 3) {
    throw IoError(std::string(name) + ": channels must be 1, 3 or 0 (as in the file), got " +
                  std::to_string(options.channels));
  }
}

// Throws IoError if a small file has a disproportionate number of pixels.
void check_image_expansion(const Image& image, std::uint64_t file_bytes, double max_expansion,
                           std::string_view name) {
  const auto bytes = static_cast<std::uint64_t>(image.height * image.width * image.channels);
  const std::uint64_t most = most_expanded(file_bytes, max_expansion);
  if (bytes <= most) return;
  throw IoError(std::string(name) + ": an image of " +
                to_string(Shape{image.height, image.width, image.channels}) + " takes " +
                std::to_string(bytes) + " bytes; at most " + std::to_string(most) +
                " allowed for a file of " + std::to_string(file_bytes) +
                " bytes (limit: max_expansion)");
}

void check_image_bytes(std::int64_t height, std::int64_t width, int channels, std::uint64_t most,
                       std::string_view name) {
  const auto bytes = static_cast<std::uint64_t>(height * width * channels);
  if (bytes <= most) return;
  throw IoError(std::string(name) + ": an image of " + to_string(Shape{height, width, channels}) +
                " takes " + std::to_string(bytes) + " bytes; at most " + std::to_string(most) +
                " allowed");
}

}  // namespace
}  // namespace io

Image read_image(const FileSource& source, const ImageOptions& options) {
  const io::Content content(source, options.max_bytes);
  const std::span<const std::byte> bytes = content.bytes();
  const std::string& name = source.name();
  io::check_image_options(options, name);
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw IoError(name + ": has " + std::to_string(bytes.size()) + " bytes, too many for an image");
  }
  const io::ImageHeader header = io::read_image_header(bytes, name);
  Image image{.height = header.height,
              .width = header.width,
              .channels = options.channels == 0 ? header.channels : options.channels};
  const std::int64_t height = options.height == 0 ? image.height : options.height;
  const std::int64_t width = options.width == 0 ? image.width : options.width;
  io::check_image_bytes(image.height, image.width, image.channels, options.max_bytes, name);
  io::check_image_bytes(height, width, image.channels, options.max_bytes, name);
  io::check_image_expansion(image, bytes.size(), options.max_expansion, name);
  image.pixels = io::decoded(bytes, name, header, image.channels);
  if (height == image.height && width == image.width) return image;
  return io::resized(image, height, width);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
