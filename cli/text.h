// SPDX-License-Identifier: MIT
// Text for a terminal and for a shell: of a user's files and folders, and sizes.
#pragma once

#include <cstdint>
#include <string>

namespace tensorgrad::cli {

// Without what would move the terminal's cursor.
std::string printable(std::string text);

// As a shell takes it as one word.
std::string shell_word(const std::string& text);

// "12.3 kB", "4.5 MB", "6.78 GB".
std::string bytes_text(std::int64_t bytes);

}  // namespace tensorgrad::cli
