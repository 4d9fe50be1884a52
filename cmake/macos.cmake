# SPDX-License-Identifier: MIT
# Compiles for macOS on another machine, with the clang of PyPI's ziglang and the libraries that
# `./dev macos` builds into build/macos-sysroot-PROCESSOR. Nothing runs what is compiled.
# macos-arm64.cmake and macos-x86_64.cmake include this file.
set(CMAKE_SYSTEM_NAME Darwin)
# Normalized, because CMake normalizes what it finds only when it runs again: objects would then be
# compiled again for another path.
cmake_path(SET build NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../build")
set(tools "${build}/macos-venv/bin")
set(CMAKE_C_COMPILER "${tools}/macos-${CMAKE_SYSTEM_PROCESSOR}-clang")
set(CMAKE_CXX_COMPILER "${tools}/macos-${CMAKE_SYSTEM_PROCESSOR}-clang++")
set(CMAKE_AR "${tools}/macos-ar")
set(CMAKE_RANLIB "${tools}/macos-ranlib")
set(CMAKE_INSTALL_NAME_TOOL /bin/false)  # zig has none; only installing a shared library needs it
set(CMAKE_FIND_ROOT_PATH "${build}/macos-sysroot-${CMAKE_SYSTEM_PROCESSOR}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS INCLUDE LIBRARY PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
