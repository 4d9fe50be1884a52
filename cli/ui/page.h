// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace tensorgrad::cli {

// Returns page.html, which CMake embeds.
std::string_view page_html();

}  // namespace tensorgrad::cli
