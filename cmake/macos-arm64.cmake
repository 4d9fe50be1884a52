# SPDX-License-Identifier: MIT
# Compiles for macOS on arm64, elsewhere.
set(CMAKE_SYSTEM_PROCESSOR arm64)
include("${CMAKE_CURRENT_LIST_DIR}/macos.cmake")
