// SPDX-License-Identifier: MIT
// Texts for terminals.
#include "text.h"

#include <gtest/gtest.h>

namespace tensorgrad::cli {
namespace {

TEST(Printable, has_no_control_characters) {
  EXPECT_EQ(printable("a\x1b[m\x7f\n\xc2\x9b."), "a?[m???.");
  EXPECT_EQ(printable("\x9b\x31m \xe2\x9b"), "?1m \xe2?");                     // stray bytes
  EXPECT_EQ(printable("\u00e9\u011b\u65e5 \xe9"), "\u00e9\u011b\u65e5 \xe9");  // also Latin-1
}

}  // namespace
}  // namespace tensorgrad::cli
