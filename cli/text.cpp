// SPDX-License-Identifier: MIT
#include "text.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include <fmt/format.h>

namespace tensorgrad::cli {

std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char head = byte(0);
  if (head < 0x80) return head >= 0x20 && head != 0x7f ? 1 : 0;
  const std::size_t n = head >= 0xf0 ? 4 : head >= 0xe0 ? 3 : 2;
  if (head < 0xc2 || head > 0xf4 || text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if (head == 0xc2 && second < 0xa0) return 0;                                       // C1 controls
  if ((head == 0xe0 && second < 0xa0) || (head == 0xf0 && second < 0x90)) return 0;  // overlong
  if ((head == 0xed && second > 0x9f) || (head == 0xf4 && second > 0x8f)) return 0;  // not Unicode
  if (head == 0xef && second == 0xbf && byte(2) >= 0xbe) return 0;  // U+FFFE, U+FFFF
  return n;
}

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t bytes = character_bytes(std::string_view(text).substr(i)); bytes > 0) {
      i += bytes;
      continue;
    }
    const auto c = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters too. So are the bytes 0x80 to 0x9F in 8-bit
    // encodings.
    const bool two_bytes = c == 0xc2 && i + 1 < text.size() &&
                           (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (two_bytes) text.erase(i, 1);
    if (c < 32 || (c >= 127 && c < 0xa0) || two_bytes) text[i] = '?';
    ++i;
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
