// SPDX-License-Identifier: MIT
// JSON from the metadata of a file.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

// IoError, beginning with `what` ("model.safetensors: the configuration"): no JSON, nested too
// deeply for what goes through a value again, or a number beyond those of a double.
nlohmann::json read_json(std::string_view json, const std::string& what);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
