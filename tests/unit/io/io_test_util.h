// SPDX-License-Identifier: MIT
// Shared by the tests of io/: error messages and hand-made files.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/message_of.h"
#include "support/temp_dir.h"
#include "tensorgrad/error.h"

namespace tensorgrad::test {

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline void put_file(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string get_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the message of the IoError that `action` throws, or "no error" if it throws none.
template <typename Action>
std::string io_error_of(const Action& action) {
  return message_of<IoError>(action);
}

inline std::string gzipped(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())) + 32, '\0');
  // zlib does not write there. NOLINTNEXTLINE(*-const-cast)
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string big_endian(std::uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

// Returns an IDX file of a type code, sizes and raw elements.
inline std::string idx_text(int type, const std::vector<std::uint32_t>& sizes,
                            std::string_view elements) {
  std::string out = {0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) out += big_endian(size);
  return out.append(elements);
}

// Returns a safetensors file with the given header, unpadded, and `data_bytes` bytes 0, 1, 2, ...
inline std::string safetensors_text(std::string_view header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  out += header;
  for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i);
  return out;
}

// splitmix64, with the same numbers on every platform.
class TestRandom {
 public:
  explicit TestRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Returns a number in [0, bound).
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }

 private:
  std::uint64_t state_;
};

// Returns `text` with a few bytes changed, removed, repeated or replaced by extreme numbers.
inline std::string mutated(std::string text, TestRandom& random) {
  static constexpr std::string_view kTokens[] = {"18446744073709551615",
                                                 "9223372036854775807",
                                                 "-1",
                                                 "0",
                                                 "1e3",
                                                 "{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 "\"",
                                                 ":",
                                                 ",",
                                                 "null",
                                                 "\xff\xff\xff\xff",
                                                 std::string_view("\0\0\0\0", 4),
                                                 "\x1f\x8b",
                                                 "\\u0000"};
  const std::size_t count = 1 + random.below(4);
  for (std::size_t i = 0; i < count && !text.empty(); ++i) {
    const std::size_t at = random.below(text.size());
    const std::size_t length = std::min<std::size_t>(1 + random.below(8), text.size() - at);
    switch (random.below(5)) {
      case 0: text[at] = static_cast<char>(random.next()); break;
      case 1: text[at] = static_cast<char>(text[at] ^ (1 << random.below(8))); break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(at, text.substr(random.below(text.size()), length)); break;
      default: text.replace(at, length, kTokens[random.below(std::size(kTokens))]); break;
    }
  }
  return text;
}

}  // namespace tensorgrad::test
