// SPDX-License-Identifier: MIT
#include "base/numbers.h"

#include <cmath>
#include <cstdio>

namespace tensorgrad::inline TENSORGRAD_ABI {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  char text[48];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
