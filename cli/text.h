// SPDX-License-Identifier: MIT
// Formats names of files and sizes for terminals and shells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorgrad::cli {

// Returns the number of bytes of the first UTF-8 character of a text that is not empty. Returns 0
// if it is invalid, a control character or otherwise not allowed in XML.
std::size_t character_bytes(std::string_view text);

// Returns `text` with control characters replaced by "?".
std::string printable(std::string text);

// Returns the number of terminal columns of a text: one per code point.
std::size_t columns_of(const std::string& text);
// Returns `text` with spaces at its end, up to `width` columns.
std::string padded(std::string text, std::size_t width);

// Returns `text` as one word of a shell command, quoted if necessary.
std::string shell_word(const std::string& text);

// Returns a device of a trainer without the reason for which it was chosen.
std::string device_text(const std::string& device);

// Returns a size such as "12.3 kB", "4.5 MB" or "6.78 GB".
std::string bytes_text(std::int64_t bytes);

}  // namespace tensorgrad::cli
