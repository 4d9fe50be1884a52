// SPDX-License-Identifier: MIT
#include "base/os/locale.h"

#include <locale.h>  // NOLINT(modernize-deprecated-headers): newlocale, uselocale
#ifdef __APPLE__
#include <xlocale.h>  // declares them on macOS
#endif

namespace tensorgrad::inline TENSORGRAD_ABI::os {

ClassicLocale::ClassicLocale() {
  static const locale_t classic = newlocale(LC_ALL_MASK, "C", nullptr);
  before_ = uselocale(classic);
}

ClassicLocale::~ClassicLocale() { uselocale(static_cast<locale_t>(before_)); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
