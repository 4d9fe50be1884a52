// SPDX-License-Identifier: MIT
// Paths are UTF-8 text on every system. On Windows, std::filesystem::path does not take them for
// it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

std::filesystem::path utf8_path(std::string_view text);
// Returns the path with `/` between its parts.
std::string utf8_text(const std::filesystem::path& path);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
