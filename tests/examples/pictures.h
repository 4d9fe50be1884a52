// SPDX-License-Identifier: MIT
// Checks of the pictures that the examples draw.
#pragma once

#include <filesystem>
#include <string>

namespace tensorgrad::testing {

// Expects that the example has drawn what it is to show into `folder`: as SVG, its curves, cells
// and texts. `trained`: not after a few steps only, so that the picture shows what was learned.
// Other examples' pictures are only read.
void expect_picture(const std::filesystem::path& folder, const std::string& example, bool trained);

}  // namespace tensorgrad::testing
