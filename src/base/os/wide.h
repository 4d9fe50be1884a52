// SPDX-License-Identifier: MIT
// Windows: its calls that take text, and that text. Only for the sources of this folder.
#pragma once

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX 1
#include <windows.h>

#include <string>

#include "base/path.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {

// Throws std::filesystem::filesystem_error if `path` is not UTF-8.
inline std::wstring wide(const std::string& path) { return utf8_path(path).wstring(); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
