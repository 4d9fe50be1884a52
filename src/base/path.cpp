// SPDX-License-Identifier: MIT
#include "base/path.h"

#include <algorithm>

namespace tensorgrad::inline TENSORGRAD_ABI {

std::filesystem::path utf8_path(std::string_view text) {
  return std::u8string(text.begin(), text.end());
}

std::string utf8_text(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  std::string plain(text.begin(), text.end());
  if constexpr (std::filesystem::path::preferred_separator != '/')
    std::replace(plain.begin(), plain.end(), '\\', '/');
  return plain;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
