// SPDX-License-Identifier: MIT
// Damaged files, safetensors files with another header, and the memory use of the process.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "unit/io/io_test_util.h"

namespace tensorgrad::test {

// Returns the bytes of a file with one of three kinds of damage.
inline std::string damaged(std::string bytes, TestRandom& random) {
  switch (random.below(3)) {
    case 0: bytes.resize(random.below(bytes.size())); return bytes;
    case 1:
      for (std::size_t i = 1 + random.below(8); i > 0; --i) {
        char& byte = bytes[random.below(bytes.size())];
        byte = static_cast<char>(byte ^ 1 << random.below(8));
      }
      return bytes;
    default: return mutated(bytes, random);
  }
}

// Returns the text with one number, if there is any, made too large for a double.
inline std::string with_a_huge_number(std::string text, TestRandom& random) {
  if (text.empty()) return text;
  const std::size_t digit = text.find_first_of("0123456789", random.below(text.size()));
  return digit == std::string::npos ? text : text.insert(digit + 1, "e999");
}

// Writes a new file. Truncating and rewriting an existing one waits for the disk.
inline void write_anew(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  put_file(path, bytes);
}

// Returns the size of the JSON header.
inline std::size_t header_size(const std::string& safetensors) {
  std::uint64_t size = 0;
  std::memcpy(&size, safetensors.data(), sizeof size);
  return size;
}

// Returns the file with another header and the same values.
inline std::string with_header(const std::string& safetensors, const nlohmann::json& header) {
  const std::string written = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::uint64_t length = written.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + written + safetensors.substr(8 + header_size(safetensors));
}

// Returns the file without its checksums. With them, every change would be detected before the
// values are read.
inline std::string without_checksum(const std::string& safetensors) {
  nlohmann::json header = nlohmann::json::parse(safetensors.substr(8, header_size(safetensors)));
  header["__metadata__"].erase("tensorgrad.checksum");
  return with_header(safetensors, header);
}

inline std::int64_t most_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return usage.ru_maxrss;
#else
  return usage.ru_maxrss * std::int64_t{1024};
#endif
}

}  // namespace tensorgrad::test
