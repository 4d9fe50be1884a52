// SPDX-License-Identifier: MIT
// Formats names of files and sizes for terminals and shells.
#pragma once

#include <cstdint>
#include <string>

namespace tensorgrad::cli {

// Returns `text` with control characters replaced by "?".
std::string printable(std::string text);

// Returns `text` as one word of a shell command, quoted if necessary.
std::string shell_word(const std::string& text);

// Returns a size such as "12.3 kB", "4.5 MB" or "6.78 GB".
std::string bytes_text(std::int64_t bytes);

}  // namespace tensorgrad::cli
