// SPDX-License-Identifier: MIT
// IDX format: two zero bytes, element type, rank, big-endian sizes, then big-endian elements.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "io/gzip.h"
#include "io/text.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

std::optional<IdxElement> element_of_code(unsigned code) {
  switch (code) {
    case 0x08: return IdxElement::kU8;
    case 0x09: return IdxElement::kI8;
    case 0x0b: return IdxElement::kI16;
    case 0x0c: return IdxElement::kI32;
    case 0x0d: return IdxElement::kF32;
    case 0x0e: return IdxElement::kF64;
    default: return std::nullopt;
  }
}

// Reads the parts of a file in order and reports errors.
class IdxReader {
 public:
  IdxReader(std::span<const std::byte> bytes, std::string_view file)
      : source_(bytes, file), file_(file) {}

  IdxArray read() {
    IdxArray array;
    const unsigned rank = read_magic(array);
    read_shape(array, rank);
    read_elements(array);
    return array;
  }

 private:
  [[noreturn]] void fail(const std::string& what, std::uint64_t byte, const std::string& wanted) {
    throw IoError(std::string(file_) + ": " + what + " at byte " + std::to_string(byte) +
                  (source_.inflates() ? " of the decompressed data: " : ": ") + wanted);
  }

  unsigned read_magic(IdxArray& array) {
    std::array<std::byte, 4> magic{};
    const std::size_t n = source_.read(magic);
    if (n < magic.size()) fail("truncated", n, "expected a 4-byte magic number");
    if (magic[0] != std::byte{0} || magic[1] != std::byte{0}) {
      fail("not an IDX file", 0, "expected two zero bytes");
    }
    const auto code = std::to_integer<unsigned>(magic[2]);
    const std::optional<IdxElement> element = element_of_code(code);
    if (!element) {
      fail("unknown element type " + std::to_string(code), 2, "expected 8, 9, 11, 12, 13 or 14");
    }
    array.element = *element;
    const auto rank = std::to_integer<unsigned>(magic[3]);
    if (rank == 0) fail("rank 0", 3, "expected at least 1");
    return rank;
  }

  void read_shape(IdxArray& array, unsigned rank) {
    std::vector<std::byte> sizes(std::size_t{4} * rank);
    const std::size_t n = source_.read(sizes);
    if (n < sizes.size()) {
      fail("truncated", 4 + n, "expected " + std::to_string(4 + sizes.size()) + " header bytes");
    }
    header_bytes_ = 4 + sizes.size();
    for (std::size_t axis = 0; axis < rank; ++axis) {
      std::uint32_t size = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        size = size << 8 | std::to_integer<std::uint32_t>(sizes[4 * axis + i]);
      }
      if (size == 0) {
        fail("size 0 of axis " + std::to_string(axis), 4 + 4 * axis, "expected at least 1");
      }
      array.shape.push_back(size);
    }
  }

  void read_elements(IdxArray& array) {
    const std::size_t width = idx_element_bytes(array.element);
    const auto promised = io::checked_bytes(array.shape, width);
    const std::string what = std::string(to_string(array.element)) + " " + to_string(array.shape);
    const std::uint64_t most = source_.most_bytes();
    if (!promised || *promised > most) {
      fail("shape " + to_string(array.shape), 4, "the file is too short for " + what);
    }
    const std::uint64_t got = source_.append(array.bytes, *promised);
    if (got < *promised) {
      fail("truncated", header_bytes_ + got,
           "expected " + std::to_string(*promised) + " bytes of " + what);
    }
    std::array<std::byte, 1> extra{};
    if (source_.read(extra) != 0) {
      fail("extra bytes", header_bytes_ + got, "expected the end of the data after " + what);
    }
    if (width > 1 && std::endian::native == std::endian::little) {
      for (std::size_t i = 0; i < array.bytes.size(); i += width) {
        std::reverse(array.bytes.begin() + static_cast<std::ptrdiff_t>(i),
                     array.bytes.begin() + static_cast<std::ptrdiff_t>(i + width));
      }
    }
  }

  io::InflatingReader source_;
  std::string_view file_;
  std::uint64_t header_bytes_ = 0;
};

}  // namespace

std::size_t idx_element_bytes(IdxElement element) {
  switch (element) {
    case IdxElement::kU8:
    case IdxElement::kI8: return 1;
    case IdxElement::kI16: return 2;
    case IdxElement::kI32:
    case IdxElement::kF32: return 4;
    case IdxElement::kF64: return 8;
  }
  return 1;
}

std::string_view to_string(IdxElement element) {
  switch (element) {
    case IdxElement::kU8: return "u8";
    case IdxElement::kI8: return "i8";
    case IdxElement::kI16: return "i16";
    case IdxElement::kI32: return "i32";
    case IdxElement::kF32: return "f32";
    case IdxElement::kF64: return "f64";
  }
  return "?";
}

IdxArray read_idx(const FileSource& source) {
  const io::Content content(source);
  return IdxReader(content.bytes(), source.name()).read();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
