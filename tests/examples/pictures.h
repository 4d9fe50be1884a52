// SPDX-License-Identifier: MIT
// Checks of the images that the examples draw.
#pragma once

#include <filesystem>
#include <string>

namespace tensorgrad::testing {

// Expects the SVG of the example in `folder`, with its curves, cells and texts. If `trained` (more
// than a few steps), the image must show what was learned. The files of other examples only need to
// be readable.
void expect_picture(const std::filesystem::path& folder, const std::string& example, bool trained);

}  // namespace tensorgrad::testing
