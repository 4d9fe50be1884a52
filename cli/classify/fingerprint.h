// SPDX-License-Identifier: MIT
// Detects whether the data of a run has changed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace tensorgrad::cli {

// FNV-1a over 64-bit words, with a shift after each. Detects accidental changes; it is not a
// cryptographic hash.
class Fingerprint {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (; bytes > 0;) {
      std::uint64_t word = 0;
      const std::size_t part = std::min(bytes, sizeof word);
      std::memcpy(&word, at, part);
      hash_ = (hash_ ^ word ^ (part << 56)) * 0x100000001b3ULL;
      hash_ ^= hash_ >> 29;
      at += part;
      bytes -= part;
    }
  }
  // Returns the hash as 16 hexadecimal digits.
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace tensorgrad::cli
