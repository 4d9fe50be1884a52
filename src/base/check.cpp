// SPDX-License-Identifier: MIT
#include "base/check.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

void check_failed(const char* condition, const char* file, int line, const std::string& detail) {
  std::string text = "internal error: " + std::string(condition) + " does not hold";
  if (!detail.empty()) text += ": " + detail;
  throw InternalError(text + " (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
