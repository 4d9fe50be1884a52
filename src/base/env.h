// SPDX-License-Identifier: MIT
// The switches that are read from the environment, all of them in one table.
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

// What `tg env` prints and docs/debugging.md shows.
std::span<const EnvSwitch> env_switches();

// The value of a switch of the table, empty where it is not set. Read anew at each call.
std::string env(std::string_view name);

// A switch that is 0 or 1; off where it is not set. UserError where it is anything else.
bool env_flag(std::string_view name);

// Throws the UserError that names a switch, its value, and what is expected.
[[noreturn]] void refuse_env(std::string_view name, const std::string& value,
                             const std::string& expected);

// TENSORGRAD_DEBUG as a level, 0 where it is not set.
// "3,fuse" is level 3, for what is named fuse only. UserError where it does not begin with a level.
int debug_level(std::string_view topic = {});

// Writes a line to standard error.
void debug_print(const std::string& text);

// The comma-separated parts of a text.
std::vector<std::string> split_list(std::string_view text);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
