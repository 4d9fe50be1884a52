// SPDX-License-Identifier: MIT
// Files of bytes that are damaged, safetensors files with another header, and what memory a program
// has taken.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "unit/io/io_test_util.h"

namespace tensorgrad::test {

// Three kinds of damage to the bytes of a file.
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

// One digit, if there is any, begins a number that no double is.
inline std::string with_a_huge_number(std::string text, TestRandom& random) {
  if (text.empty()) return text;
  const std::size_t digit = text.find_first_of("0123456789", random.below(text.size()));
  return digit == std::string::npos ? text : text.insert(digit + 1, "e999");
}

// Into a new file: one that is cut off and written again waits for the disk.
inline void write_anew(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  put_file(path, bytes);
}

// Of the JSON in it.
inline std::size_t header_size(const std::string& safetensors) {
  std::uint64_t size = 0;
  std::memcpy(&size, safetensors.data(), sizeof size);
  return size;
}

// The same values behind another header.
inline std::string with_header(const std::string& safetensors, const nlohmann::json& header) {
  const std::string written = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::uint64_t length = written.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + written + safetensors.substr(8 + header_size(safetensors));
}

// The file without its checksums, by which any change is seen before its values are looked at.
inline std::string without_checksum(const std::string& safetensors) {
  nlohmann::json header = nlohmann::json::parse(safetensors.substr(8, header_size(safetensors)));
  header["__metadata__"].erase("tensorgrad.checksum");
  return with_header(safetensors, header);
}

inline std::int64_t most_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * std::int64_t{1024};
}

}  // namespace tensorgrad::test
