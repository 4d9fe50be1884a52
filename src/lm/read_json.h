// SPDX-License-Identifier: MIT
// Parsing of JSON from files.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

// Returns the parsed JSON. Throws IoError that begins with `what`, for example "model.safetensors:
// the configuration", if the text is not JSON, is nested too deeply for recursive functions, or has
// a number that does not fit in a double.
nlohmann::json read_json(std::string_view json, const std::string& what);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
