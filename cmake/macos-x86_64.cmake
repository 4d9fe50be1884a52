# SPDX-License-Identifier: MIT
# Compiles for macOS on x86_64, elsewhere.
set(CMAKE_SYSTEM_PROCESSOR x86_64)
include("${CMAKE_CURRENT_LIST_DIR}/macos.cmake")
