// SPDX-License-Identifier: MIT
// Exports a compiled function as files that a web page runs without the compiler: kernels and
// buffers as JSON, and the initial contents of the buffers. docs/formats.md describes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/runtime/index_bounds.h"
#include "compile/runtime/instance.h"

namespace tensorgrad::web {

// Returns the capabilities of every browser with WebGPU: default limits, no subgroups. With `f16`,
// also shader-f16.
DeviceInfo portable_device(bool f16);

// The program for one dynamic size, compiled for portable_device().
struct SizedProgram {
  std::optional<std::int64_t> size;  // empty: no input is dynamic
  Program program;
  ScalarValues scalars;                                   // at the first run
  std::map<std::string, std::vector<IndexBound>> bounds;  // by input
};

// Contents of parameter and state buffers by name. Trailing zeros may be omitted.
using Contents = std::map<std::string, std::vector<std::byte>>;

struct ModelText {
  std::string name, doc;
};

// Files by name: model.json, weights.bin, runner.js and runner.d.ts.
using Files = std::map<std::string, std::vector<std::byte>>;

// Returns the files of the programs, which share buffers of equal name. Throws UserError if a name
// is not UTF-8.
Files make_files(const ModelText& text, bool f16, const std::vector<SizedProgram>& programs,
                 const Contents& contents);

// Creates the folder if it does not exist. Throws IoError.
void write_files(const std::string& folder, const Files& files);

// Files of web/runner.
std::string_view runner_script();
std::string_view runner_types();

}  // namespace tensorgrad::web
