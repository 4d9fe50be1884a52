// SPDX-License-Identifier: MIT
#include "base/numbers.h"

#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// A template, so that the branch without std::from_chars is not compiled if there is one.
template <class Float>
std::optional<Float> parse(std::string_view text) {
  Float value = 0;
  if constexpr (requires(const char* at) { std::from_chars(at, at, value); }) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc() && std::isfinite(value)) return value;
    // inf, nan, or out of range: from_chars does not say whether too large or too small.
  }
  return parse_finite_by_strtod(text);
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  char text[48];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

std::optional<double> parse_finite(std::string_view text) { return parse<double>(text); }

std::optional<double> parse_finite_by_strtod(std::string_view text) {
  // strtod also accepts leading blanks, a plus, hexadecimal numbers and names.
  if (text.starts_with('+') ||
      text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) {
    return std::nullopt;
  }
  std::string number(text);
  if (const auto point = number.find('.'); point != std::string::npos) {
    number.replace(point, 1, std::localeconv()->decimal_point);
  }
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || end != number.c_str() + number.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
