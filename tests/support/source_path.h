// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace tensorgrad::test {

// Returns the path of a file of the repository, such as "tests/golden/scan.safetensors". Only the
// source file of this function knows the folder, so that ccache serves the tests of all clones.
std::string source_path(const std::string& name);

}  // namespace tensorgrad::test
