// SPDX-License-Identifier: MIT
#include "text.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include <fmt/format.h>

namespace tensorgrad::cli {

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters too.
    const bool two_bytes = c == 0xc2 && i + 1 < text.size() &&
                           (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (two_bytes) text.erase(i, 1);
    if (c < 32 || c == 127 || two_bytes) text[i] = '?';
  }
  return text;
}

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t columns = columns_of(text);
  return columns < width ? text.append(width - columns, ' ') : text;
}

std::string shell_word(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("/._-+:,@", c) != nullptr;
  });
  if (plain && !text.empty()) return text;
  if (printable(text) != text) {  // $'...' has escapes for control characters
    std::string out = "$'";
    for (const char c : text) {
      const bool safe = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                        std::strchr(" /._-+:,@", c) != nullptr;
      out += safe && c != '\0' ? std::string(1, c)
                               : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    return out + "'";
  }
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string device_text(const std::string& device) { return device.substr(0, device.find(';')); }

std::string bytes_text(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value >= 1e9) return fmt::format("{:.2f} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{:.1f} kB", value / 1e3);
}

}  // namespace tensorgrad::cli
