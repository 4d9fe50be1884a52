// SPDX-License-Identifier: MIT
// What the tool needs of the operating system besides the library. Text is UTF-8.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace tensorgrad::cli::os {

// Returns the arguments of main() as UTF-8, and has the streams of the program take UTF-8 and leave
// ends of lines as they are. What is returned lives as long as the process.
char** arguments(int& count, char** given);
void set_if_unset(const char* variable, const char* value);

bool is_terminal(std::FILE* stream);
// Returns the number of columns of a terminal, or 0 if the stream is none.
int terminal_columns(std::FILE* stream);

// The signals that ask the process to end, as numbers.
extern const int kInterrupt;
// Calls `handle` at the first signal of each kind that asks the process to end: Ctrl-C, a request
// to end, the end of the terminal. The next one of the kind ends the process.
void on_end_request(void (*handle)(int));

// Returns whether a FileLock holds the file.
bool is_locked(const std::string& path);

// Loads a shared library and returns its handle, or null and why it cannot be loaded. What it links
// is visible to libraries that are loaded later, as plug-ins of MPI expect. Never unloaded.
void* open_library(const std::string& path, std::string& error);
// Returns a function of the library, or null.
void* find_symbol(void* library, const char* name);

// Returns the name of this machine in its network.
std::string host_name();
// Returns for each core of this machine '1' if the process may run on it, else '0'.
std::string allowed_cores();

// As in src/base/path.h.
std::filesystem::path utf8_path(std::string_view text);
std::string utf8_text(const std::filesystem::path& path);

}  // namespace tensorgrad::cli::os
