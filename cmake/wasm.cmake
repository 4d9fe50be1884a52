# SPDX-License-Identifier: MIT
# Compiles for WebAssembly with the emscripten that `./dev wasm` unpacks into build/wasm-tools, and
# the libraries that it builds into build/wasm-sysroot; what must run, node runs.
set(build "${CMAKE_CURRENT_LIST_DIR}/../build")
set(CMAKE_C_FLAGS_INIT "-msimd128 -fwasm-exceptions")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
# Programs see the files of the machine, and end as others do. Without -O2 what CMake tries when it
# configures has emscripten build its libraries for debugging as well, for minutes.
set(CMAKE_EXE_LINKER_FLAGS_INIT
  "-O2 -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sSTACK_SIZE=8MB -sNODERAWFS -sEXIT_RUNTIME")
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
endforeach()
get_filename_component(CMAKE_FIND_ROOT_PATH "${build}/wasm-sysroot" ABSOLUTE)
include("${build}/wasm-tools/usr/share/emscripten/cmake/Modules/Platform/Emscripten.cmake")
