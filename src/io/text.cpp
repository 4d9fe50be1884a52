// SPDX-License-Identifier: MIT
// Helpers of the io module: quoting for messages, UTF-8 validation, sizes with overflow checks.
#include "io/text.h"

#include <limits>
#include <system_error>

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

constexpr char kHex[] = "0123456789abcdef";

void append_printable(std::string& out, std::string_view text, bool escape_quotes) {
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    const std::size_t n = utf8_length(text);
    const bool control = c < 0x20 || c == 0x7f || (c == 0xc2 && n == 2 && text[1] < '\xa0');
    if (n == 0 || control) {
      out += "\\x";
      out += kHex[c >> 4];
      out += kHex[c & 15];
      text.remove_prefix(1);
      continue;
    }
    if (escape_quotes && (c == '"' || c == '\\')) out += '\\';
    out += text.substr(0, n);
    text.remove_prefix(n);
  }
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char head = byte(0);
  if (head < 0x80) return 1;
  const std::size_t n = head >= 0xf0 ? 4 : head >= 0xe0 ? 3 : 2;
  if (head < 0xc2 || head > 0xf4 || text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if (head == 0xe0 && second < 0xa0) return 0;  // overlong
  if (head == 0xed && second > 0x9f) return 0;  // surrogate
  if (head == 0xf0 && second < 0x90) return 0;  // overlong
  if (head == 0xf4 && second > 0x8f) return 0;  // beyond U+10FFFF
  return n;
}

std::string in_quotes(std::string_view text, std::size_t max_bytes) {
  std::string out = "\"";
  const bool cut = text.size() > max_bytes;
  if (cut) {
    // Moves back to the start of a sequence, so that no character is split.
    while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xc0) == 0x80) {
      --max_bytes;
    }
  }
  append_printable(out, text.substr(0, max_bytes), true);
  return out + (cut ? "...\"" : "\"");
}

std::string printable(std::string_view text) {
  std::string out;
  append_printable(out, text, false);
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

bool is_plain_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    const std::size_t n = utf8_length(text);
    if (n == 0 || c < 0x20 || c == 0x7f) return false;
    if (n == 2 && c == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0) return false;
    text.remove_prefix(n);
  }
  return true;
}

std::optional<std::uint64_t> checked_bytes(const Shape& shape, std::uint64_t element_bytes) {
  std::uint64_t total = element_bytes;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (__builtin_mul_overflow(total, static_cast<std::uint64_t>(size), &total)) {
      return std::nullopt;
    }
  }
  if (total > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return total;
}

std::string system_error_text(int code) {
  std::string text = std::generic_category().message(code);
  if (text.size() > 1 && text[1] >= 'a' && text[0] >= 'A' && text[0] <= 'Z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
