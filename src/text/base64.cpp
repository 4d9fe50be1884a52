// SPDX-License-Identifier: MIT
#include "text/base64.h"

#include <cstddef>

namespace tensorgrad::text {
namespace {

// Returns the value of a base64 character, or -1.
int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

bool decode_base64(std::string_view text, std::string& bytes) {
  if (text.size() % 4 != 0 || text.empty()) return false;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  unsigned bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool pad = i >= text.size() - padding;
    const int value = pad ? 0 : sextet(text[i]);
    if (value < 0) return false;
    bits = bits << 6 | static_cast<unsigned>(value);
    if (i % 4 != 3) continue;
    bytes += static_cast<char>(bits >> 16 & 0xff);
    bytes += static_cast<char>(bits >> 8 & 0xff);
    bytes += static_cast<char>(bits & 0xff);
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return true;
}

std::string encode_base64(std::string_view bytes) {
  constexpr std::string_view kBase64Digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned bits = 0;
    for (std::size_t j = i; j < i + 3; ++j)
      bits = bits << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0U);
    for (unsigned j = 0; j < 4; ++j) {
      const bool pad = i + j > bytes.size();
      text += pad ? '=' : kBase64Digits[bits >> (18 - 6 * j) & 0x3fU];
    }
  }
  return text;
}

}  // namespace tensorgrad::text
