// SPDX-License-Identifier: MIT
#include "base/os/locale.h"

#include <locale.h>

#include <clocale>

namespace tensorgrad::inline TENSORGRAD_ABI::os {

ClassicLocale::ClassicLocale() {
  const std::string point = std::localeconv()->decimal_point;
  if (point == ".") return;
  per_thread_ = ::_configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
  before_ = std::setlocale(LC_NUMERIC, nullptr);
  std::setlocale(LC_NUMERIC, "C");
}

ClassicLocale::~ClassicLocale() {
  if (before_.empty()) return;
  std::setlocale(LC_NUMERIC, before_.c_str());
  ::_configthreadlocale(per_thread_);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
