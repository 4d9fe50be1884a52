// SPDX-License-Identifier: MIT
// The switches that are read from the environment, all of them in one table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad {

struct EnvSwitch {
  const char* name;
  const char* meaning;
};

// What `tg env` prints and docs/debugging.md shows.
std::span<const EnvSwitch> env_switches();

// The value of a switch of the table, empty where it is not set. Read anew at each call.
std::string env(std::string_view name);

// TENSORGRAD_DEBUG as a level, 0 where it is not set.
// "3,fuse" is level 3, for what is named fuse only.
int debug_level(std::string_view topic = {});

// Writes a line to standard error.
void debug_print(const std::string& text);

// The comma-separated parts of a text.
std::vector<std::string> split_list(std::string_view text);

}  // namespace tensorgrad
