# SPDX-License-Identifier: MIT
# Compiles for WebAssembly with the emscripten that `./dev wasm` and `./dev web` unpack into
# build/wasm-tools, and the libraries that they build into build/wasm-sysroot; node runs what must run.
set(build "${CMAKE_CURRENT_LIST_DIR}/../build")
set(CMAKE_C_FLAGS_INIT "-msimd128 -fwasm-exceptions")
if(TENSORGRAD_WASM_THREADS)
  string(APPEND CMAKE_C_FLAGS_INIT " -pthread")
endif()
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
# Without -O2 what CMake tries when it configures has emscripten build its libraries for debugging as
# well, for minutes.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-O2")
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
endforeach()
get_filename_component(CMAKE_FIND_ROOT_PATH "${build}/wasm-sysroot" ABSOLUTE)
include("${build}/wasm-tools/usr/share/emscripten/cmake/Modules/Platform/Emscripten.cmake")
