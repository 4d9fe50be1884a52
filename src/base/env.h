// SPDX-License-Identifier: MIT
// Environment variables of the library, all in one table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct EnvSwitch {
  const char* name;
  const char* meaning;
};

// Returns the table that `tg env` prints and docs/debugging.md shows.
std::span<const EnvSwitch> env_switches();

// Returns the value of a variable in the table, or an empty string if it is not set. Reads it anew
// at each call.
std::string env(std::string_view name);

// Returns the value of a variable that is 0 or 1; false if it is not set. Throws UserError for
// other values.
bool env_flag(std::string_view name);

// Throws a UserError that names the variable, its value, and what is expected.
[[noreturn]] void refuse_env(std::string_view name, const std::string& value,
                             const std::string& expected);

// Returns the level in TENSORGRAD_DEBUG, or 0 if it is not set. "3,fuse" is level 3 for topics that
// contain "fuse", and level 1 for others. Throws UserError if the value does not begin with a
// level.
int debug_level(std::string_view topic = {});

// Writes a line to standard error.
void debug_print(const std::string& text);

// Returns the nonempty comma-separated parts of a text.
std::vector<std::string> split_list(std::string_view text);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
