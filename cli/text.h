// SPDX-License-Identifier: MIT
// Text of a user's files and folders, made fit for a terminal and for a shell.
#pragma once

#include <string>

namespace tensorgrad::cli {

// Without what would move the terminal's cursor.
std::string printable(std::string text);

// As a shell takes it as one word.
std::string shell_word(const std::string& text);

}  // namespace tensorgrad::cli
