// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A number for people: "0.5", "-1", "1e+20", "nan" (whose sign says nothing), "inf".
std::string number_text(double value);

// Returns the finite decimal number that `text` consists of ("-1", ".5", "2e-3"), whatever the
// locale; nothing if it is not one. What is too small for a double is 0.
std::optional<double> parse_finite(std::string_view text);
// Does the same by std::strtod. parse_finite() uses it if the standard library has no
// std::from_chars for double (libc++ before 20), and for numbers out of range.
std::optional<double> parse_finite_by_strtod(std::string_view text);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
