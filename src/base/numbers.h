// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A number for people: "0.5", "-1", "1e+20", "nan" (whose sign says nothing), "inf".
std::string number_text(double value);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
