// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns what std::snprintf writes in the locale "C". The program's locale may use a decimal
// comma.
#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
std::string format_text(const char* format, ...);

// Returns a readable number: "0.5", "-1", "1e+20", "nan" (without its sign), "inf".
std::string number_text(double value);

// Returns `value` exactly, as files store it: "0x1.8p+1", "-0x0p+0", "inf", "nan".
std::string hex_float(double value);
// Parses the number at the start of `text` like std::strtod in the locale "C", and removes it from
// `text`. Returns nothing if there is none. Does not skip leading blanks.
std::optional<double> take_float(std::string_view& text);

// Returns the finite decimal number that `text` consists of ("-1", ".5", "2e-3"), in any locale, or
// nothing if it is not one. Numbers too small for a double become 0.
std::optional<double> parse_finite(std::string_view text);
// Like parse_finite(), with std::strtod. parse_finite() uses it if the standard library has no
// std::from_chars for double (libc++ before 20), in pages, and for numbers out of range.
std::optional<double> parse_finite_by_strtod(std::string_view text);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
