// SPDX-License-Identifier: MIT
// MBJS format: magic number, version, layer kinds, sizes, values; all little-endian.
#include "tensorgrad/data/mbjs.h"

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/numbers.h"
#include "io/input_file.h"
#include "io/output_file.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::uint32_t kMbjsMagic = 0x4D424A53;
constexpr std::uint32_t kMbjsKinds = 4;
constexpr std::size_t kMbjsWord = 4;

std::uint64_t bytes_of_value(int version) { return version == 3 ? 2 : 4; }
std::uint64_t up_to_word(std::uint64_t bytes) {
  return (bytes + kMbjsWord - 1) / kMbjsWord * kMbjsWord;
}

class MbjsReader {
 public:
  MbjsReader(std::span<const std::byte> bytes, std::string_view file)
      : bytes_(bytes), file_(file) {}

  MbjsFile read() {
    MbjsFile file;
    if (word("magic number") != kMbjsMagic)
      fail("not an MBJS file", 0, "expected the bytes 53 4a 42 4d");
    const std::uint32_t version = word("version");
    if (version < 1 || version > 3) {
      fail("version " + std::to_string(version), kMbjsWord, "expected 1, 2 or 3");
    }
    file.version = static_cast<int>(version);
    if (version > 1) read_layers(file);
    read_tensors(file);
    return file;
  }

 private:
  [[noreturn]] void fail(const std::string& what, std::uint64_t byte,
                         const std::string& wanted) const {
    throw IoError(std::string(file_) + ": " + what + " at byte " + std::to_string(byte) + ": " +
                  wanted);
  }
  [[nodiscard]] std::uint64_t left() const { return bytes_.size() - at_; }
  // Throws IoError if fewer than `count` bytes are left.
  void demand(std::uint64_t count, const std::string& what) const {
    if (left() >= count) return;
    fail("truncated", bytes_.size(),
         "expected " + std::to_string(count) + " bytes of " + what + " from byte " +
             std::to_string(at_));
  }
  std::uint32_t word(const std::string& what) {
    demand(kMbjsWord, what);
    std::uint32_t value = 0;
    for (std::size_t i = kMbjsWord; i-- > 0;)
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[at_ + i]);
    at_ += kMbjsWord;
    return value;
  }

  void read_layers(MbjsFile& file) {
    const std::uint64_t count = word("the number of layers");
    demand(up_to_word(count), "kinds of " + std::to_string(count) + " layers");
    for (std::uint64_t i = 0; i < up_to_word(count); ++i) {
      const auto byte = std::to_integer<std::uint32_t>(bytes_[at_ + i]);
      if (i >= count) {
        if (byte != 0) fail("padding " + std::to_string(byte), at_ + i, "expected 0");
        continue;
      }
      if (byte >= kMbjsKinds) {
        fail("unknown kind " + std::to_string(byte) + " of layer " + std::to_string(i), at_ + i,
             "expected 0 to 3");
      }
      file.layers.push_back(static_cast<MbjsLayer>(byte));
    }
    at_ += up_to_word(count);
  }

  void read_tensors(MbjsFile& file) {
    const std::uint64_t count = word("the number of tensors");
    demand(count * kMbjsWord, "sizes of " + std::to_string(count) + " tensors");
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t i = 0; i < count; ++i) sizes.push_back(word("a size"));
    for (const std::uint64_t size : sizes) {
      const std::uint64_t bytes = size * bytes_of_value(file.version);
      demand(bytes, "tensor " + std::to_string(file.tensors.size()));
      file.tensors.push_back(values(size, file.version));
    }
    if (left() == 0) return;
    fail(std::to_string(left()) + " extra bytes", at_, "expected the end of the file");
  }

  std::vector<float> values(std::uint64_t count, int version) {
    std::vector<float> out(count);
    for (float& value : out) {
      if (version == 3) {
        const auto low = std::to_integer<unsigned>(bytes_[at_]);
        const auto high = std::to_integer<unsigned>(bytes_[at_ + 1]);
        value = from_half(static_cast<std::uint16_t>(high << 8 | low));
        at_ += 2;
      } else {
        const std::uint32_t bits = word("a value");
        std::memcpy(&value, &bits, sizeof value);
      }
    }
    return out;
  }

  std::span<const std::byte> bytes_;
  std::string_view file_;
  std::uint64_t at_ = 0;
};

void put_word(std::string& out, std::uint32_t value, std::size_t bytes = kMbjsWord) {
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

void put_half(std::string& out, float value, std::size_t tensor, std::size_t place) {
  const std::uint16_t half = to_half(value);
  if (std::isfinite(value) && (half & 0x7fffU) == 0x7c00U) {
    throw UserError("write_mbjs: value " + std::to_string(place) + " of tensor " +
                    std::to_string(tensor) + " is " + number_text(double{value}) +
                    ", which does not fit in f16");
  }
  put_word(out, half, 2);
}

}  // namespace

MbjsFile read_mbjs(const FileSource& source) {
  const io::Content content(source);
  return MbjsReader(content.bytes(), source.name()).read();
}

void write_mbjs(const FileSink& sink, const MbjsFile& file) {
  if (file.version < 1 || file.version > 3) {
    throw UserError("write_mbjs: expected version 1, 2 or 3, got " + std::to_string(file.version));
  }
  for (const MbjsLayer layer : file.layers) {
    if (file.version > 1 || layer == MbjsLayer::kMamba1) continue;
    throw UserError("write_mbjs: version 1 supports only Mamba-1 layers");
  }
  std::string out;
  put_word(out, kMbjsMagic);
  put_word(out, static_cast<std::uint32_t>(file.version));
  if (file.version > 1) {
    put_word(out, static_cast<std::uint32_t>(file.layers.size()));
    for (const MbjsLayer layer : file.layers) out += static_cast<char>(layer);
    out.resize(up_to_word(out.size()), '\0');
  }
  put_word(out, static_cast<std::uint32_t>(file.tensors.size()));
  for (const std::vector<float>& tensor : file.tensors) {
    if (tensor.size() > UINT32_MAX)
      throw UserError(
          "write_mbjs: a tensor has 2^32 or more values, which the format does not support");
    put_word(out, static_cast<std::uint32_t>(tensor.size()));
  }
  for (std::size_t t = 0; t < file.tensors.size(); ++t) {
    for (std::size_t i = 0; i < file.tensors[t].size(); ++i) {
      const float value = file.tensors[t][i];
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      if (file.version == 3) {
        put_half(out, value, t, i);
      } else {
        put_word(out, bits);
      }
    }
  }
  io::OutputFile output(sink, out.size());
  output.write(std::as_bytes(std::span(out)));
  output.commit();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
