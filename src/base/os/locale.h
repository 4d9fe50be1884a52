// SPDX-License-Identifier: MIT
// The locale of C functions.
#pragma once

#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {

// Sets the locale "C" for this thread during its lifetime, for numbers with a decimal point.
class ClassicLocale {
 public:
  ClassicLocale();
  ~ClassicLocale();
  ClassicLocale(const ClassicLocale&) = delete;
  ClassicLocale& operator=(const ClassicLocale&) = delete;

 private:
#ifdef _WIN32
  int per_thread_ = 0;
  std::string before_;  // empty if nothing was changed
#else
  void* before_ = nullptr;
#endif
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
