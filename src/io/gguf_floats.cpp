// SPDX-License-Identifier: MIT
// The elements of ggml's quantized blocks, which ggml-common.h and ggml-quants.c define.
#include <array>
#include <cstring>
#include <span>

#include "base/half.h"
#include "io/elements.h"
#include "io/gguf.h"
#include "io/text.h"
#include "tensorgrad/data/gguf.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace io {
namespace {

using Block = std::span<const std::uint8_t>;
using Values = std::span<float>;

constexpr std::size_t kSimpleBlock = 32;  // elements of a block without _K
constexpr std::size_t kHalf = 2;          // bytes of an f16

std::uint16_t bits_at(Block block, std::size_t byte) {
  return static_cast<std::uint16_t>(block[byte] | block[byte + 1] << 8);
}
float half_at(Block block, std::size_t byte) { return from_half(bits_at(block, byte)); }

void f32_element(Block block, Values out) { std::memcpy(out.data(), block.data(), sizeof(float)); }
void f16_element(Block block, Values out) { out[0] = half_at(block, 0); }
void bf16_element(Block block, Values out) { out[0] = from_bfloat16(bits_at(block, 0)); }

void q8_0_block(Block block, Values out) {
  const float scale = half_at(block, 0);
  for (std::size_t i = 0; i < kSimpleBlock; ++i)
    out[i] = static_cast<float>(static_cast<std::int8_t>(block[kHalf + i])) * scale;
}

// Q4 and Q5: a scale, with `has_least` the value of 0, with `bits` 5 the upper bits, and nibbles.
// The low ones are the first half of the elements. Without a least value, 0 is in the middle.
void small_block(Block block, Values out, int bits, bool has_least) {
  const float scale = half_at(block, 0);
  const float least = has_least ? half_at(block, kHalf) : 0;
  const int middle = has_least ? 0 : 1 << (bits - 1);
  Block rest = block.subspan(has_least ? 2 * kHalf : kHalf);
  std::uint32_t upper = 0;
  if (bits == 5) {
    std::memcpy(&upper, rest.data(), sizeof upper);
    rest = rest.subspan(sizeof upper);
  }
  for (std::size_t i = 0; i < kSimpleBlock; ++i) {
    const std::uint8_t both = rest[i % (kSimpleBlock / 2)];
    const int low = i < kSimpleBlock / 2 ? both & 15 : both >> 4;
    const int value = (low | static_cast<int>(upper >> i & 1) << 4) - middle;
    out[i] = static_cast<float>(value) * scale + least;
  }
}
void q4_0_block(Block block, Values out) { small_block(block, out, 4, false); }
void q4_1_block(Block block, Values out) { small_block(block, out, 4, true); }
void q5_0_block(Block block, Values out) { small_block(block, out, 5, false); }
void q5_1_block(Block block, Values out) { small_block(block, out, 5, true); }

// The scale and the least value, of 6 bits each, of the part `part` of eight; `packed` has twelve
// bytes.
std::array<int, 2> scale_and_least(Block packed, std::size_t part) {
  if (part < 4) return {packed[part] & 63, packed[part + 4] & 63};
  return {(packed[part + 4] & 15) | packed[part - 4] >> 6 << 4,
          packed[part + 4] >> 4 | packed[part] >> 6 << 4};
}

// Q4_K and Q5_K: 8 parts of 32 elements. Two parts share bytes: the first has the low nibbles.
void large_block(Block block, Values out, bool five_bits) {
  constexpr std::size_t kScales = 12, kParts = 8, kUpper = 32;
  const float scale = half_at(block, 0), least = half_at(block, kHalf);
  const Block packed = block.subspan(2 * kHalf, kScales);
  const Block upper = block.subspan(2 * kHalf + kScales);
  const Block nibbles = five_bits ? upper.subspan(kUpper) : upper;
  for (std::size_t part = 0; part < kParts; ++part) {
    const auto [steps, below] = scale_and_least(packed, part);
    const float step = scale * static_cast<float>(steps);
    const float offset = least * static_cast<float>(below);
    for (std::size_t i = 0; i < kSimpleBlock; ++i) {
      const std::uint8_t both = nibbles[part / 2 * kSimpleBlock + i];
      int value = part % 2 == 0 ? both & 15 : both >> 4;
      if (five_bits) value |= (upper[i] >> part & 1) << 4;
      out[part * kSimpleBlock + i] = step * static_cast<float>(value) - offset;
    }
  }
}
void q4_k_block(Block block, Values out) { large_block(block, out, false); }
void q5_k_block(Block block, Values out) { large_block(block, out, true); }

// 16 parts of 16 elements. The low 4 bits come first, then the upper 2, the scales and their scale.
void q6_k_block(Block block, Values out) {
  constexpr std::size_t kLow = 128, kUpper = 64, kScales = 16;
  const Block scales = block.subspan(kLow + kUpper, kScales);
  const float scale = half_at(block, kLow + kUpper + kScales);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t half = i / 128, row = i % 128 / 32, column = i % 32;
    const std::uint8_t low = block[half * 64 + row % 2 * 32 + column];
    const std::uint8_t upper = block[kLow + half * 32 + column];
    const int value = ((row < 2 ? low & 15 : low >> 4) | (upper >> 2 * row & 3) << 4) - 32;
    const auto steps = static_cast<std::int8_t>(scales[i / 16]);
    out[i] = scale * static_cast<float>(steps) * static_cast<float>(value);
  }
}

struct BlockDecoder {
  std::string_view name;
  void (*decode)(Block block, Values out);
};
constexpr std::array<BlockDecoder, 11> kDecoders = {{{"F32", f32_element},
                                                     {"F16", f16_element},
                                                     {"BF16", bf16_element},
                                                     {"Q8_0", q8_0_block},
                                                     {"Q4_0", q4_0_block},
                                                     {"Q4_1", q4_1_block},
                                                     {"Q5_0", q5_0_block},
                                                     {"Q5_1", q5_1_block},
                                                     {"Q4_K", q4_k_block},
                                                     {"Q5_K", q5_k_block},
                                                     {"Q6_K", q6_k_block}}};

}  // namespace
}  // namespace io

std::vector<float> gguf_floats(const std::string& file, const std::string& name,
                               const StoredTensor& tensor) {
  const auto fail = [&](const std::string& what) {
    throw IoError(file + ": tensor " + io::in_quotes(name) + ": " + what);
  };
  const io::BlockDecoder* decoder = nullptr;
  for (const io::BlockDecoder& each : io::kDecoders) {
    if (each.name == tensor.dtype) decoder = &each;
  }
  if (decoder == nullptr) {
    fail("expected floats or one of ggml's quantized types that can be read, got " +
         io::in_quotes(tensor.dtype));
  }
  const io::GgufType& type = *io::gguf_type(tensor.dtype);
  const auto bytes = io::gguf_bytes(type, tensor.shape);
  if (!bytes || *bytes != tensor.data.size()) {
    fail(tensor.dtype + " " + to_string(tensor.shape) + " does not take " +
         std::to_string(tensor.data.size()) + " bytes");
  }
  const std::span data(reinterpret_cast<const std::uint8_t*>(tensor.data.data()),
                       tensor.data.size());
  std::vector<float> values(tensor.data.size() / type.bytes * type.elements);
  for (std::size_t i = 0; i * type.bytes < data.size(); ++i) {
    decoder->decode(data.subspan(i * type.bytes, type.bytes),
                    io::Values(values).subspan(i * type.elements, type.elements));
  }
  return values;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
