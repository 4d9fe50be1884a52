// SPDX-License-Identifier: MIT
#include "base/numbers.h"

#include <cctype>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/os/locale.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

#ifdef __EMSCRIPTEN__
constexpr bool kUsesFromChars = false;  // its tables take 15 KB of each module that pages load
#else
constexpr bool kUsesFromChars = true;
#endif

// A template, so that the std::from_chars branch is discarded if the library lacks it for Float.
template <class Float>
std::optional<Float> parse(std::string_view text) {
  Float value = 0;
  if constexpr (kUsesFromChars && requires(const char* at) { std::from_chars(at, at, value); }) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc() && std::isfinite(value)) return value;
    // inf, nan, or out of range: from_chars does not report whether it is too large or too small.
  }
  return parse_finite_by_strtod(text);
}

}  // namespace

std::string format_text(const char* format, ...) {
  const os::ClassicLocale locale;
  std::string text(160, '\0');
  while (true) {
    va_list arguments;
    va_start(arguments, format);
    const int size = std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    if (size < 0) return "";
    const bool fits = static_cast<std::size_t>(size) < text.size();
    text.resize(static_cast<std::size_t>(size) + (fits ? 0 : 1));
    if (fits) return text;
  }
}

std::string number_text(double value) {
  return std::isnan(value) ? "nan" : format_text("%.10g", value);
}

std::string hex_float(double value) { return format_text("%a", value); }

std::optional<double> take_float(std::string_view& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0) return std::nullopt;
  const os::ClassicLocale locale;
  const std::string begin(text.substr(0, 48));  // %a and %.17g write fewer characters
  char* end = nullptr;
  const double value = std::strtod(begin.c_str(), &end);
  if (end == begin.c_str()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - begin.c_str()));
  return value;
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
