// SPDX-License-Identifier: MIT
// A compiled function as files that a page runs without the compiler: kernels and buffers as JSON,
// and what the buffers hold at first. docs/formats.md describes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/index_bounds.h"
#include "compile/instance.h"

namespace tensorgrad::web {

// What every browser with WebGPU has: the default limits, no subgroups. `f16`: and shader-f16.
DeviceInfo portable_device(bool f16);

// The program for one value of the dynamic size, compiled for portable_device().
struct SizedProgram {
  std::optional<std::int64_t> size;  // none: no input is dynamic
  Program program;
  HyperValues scalars;                                    // at the first run
  std::map<std::string, std::vector<IndexBound>> bounds;  // by input
};

// Contents of the buffers of parameters and states, by their names. Zeros may be missing at the
// end.
using Contents = std::map<std::string, std::vector<std::byte>>;

struct ModelText {
  std::string name, doc;
};

// By name: model.json, weights.bin, runner.js and runner.d.ts.
using Files = std::map<std::string, std::vector<std::byte>>;

// Buffers of one name are one buffer of all programs. Throws UserError if a name is not UTF-8.
Files make_files(const ModelText& text, bool f16, const std::vector<SizedProgram>& programs,
                 const Contents& contents);

// Creates the folder if it does not exist. Throws IoError.
void write_files(const std::string& folder, const Files& files);

// Files of web/runner.
std::string_view runner_script();
std::string_view runner_types();

}  // namespace tensorgrad::web
