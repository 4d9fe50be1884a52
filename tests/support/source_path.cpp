// SPDX-License-Identifier: MIT
#include "support/source_path.h"

namespace tensorgrad::test {

std::string source_path(const std::string& name) { return TENSORGRAD_SOURCE_DIR "/" + name; }

}  // namespace tensorgrad::test
