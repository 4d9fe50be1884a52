# SPDX-License-Identifier: MIT
# Provides webgpu.h, wgpu.h and the wgpu-native library, which is loaded at run time, never linked.
#
#   tensorgrad_provide_wgpu_native(<include-var> <library-var>)
#
# sets the folder that holds webgpu/webgpu.h and the path of a copy of the library in the build tree.
# Source: TENSORGRAD_WGPU_ROOT if set, else the Python wheel pinned by hash in wgpu-requirements.txt,
# fetched once into TENSORGRAD_FETCH_DIR and shared by every build tree that names the same folder.

include(FetchOnce)

set(_tensorgrad_wgpu_pin "${CMAKE_CURRENT_LIST_DIR}/wgpu-requirements.txt")

set(TENSORGRAD_WGPU_PLATFORM "" CACHE STRING
  "Wheel platform when cross compiling, e.g. manylinux_2_28_aarch64; empty for this machine's")
mark_as_advanced(TENSORGRAD_WGPU_PLATFORM)

function(_tensorgrad_fetch_wgpu_wheel root)
  tensorgrad_fetch_once("${root}" "${TENSORGRAD_WGPU_PLATFORM}" "${_tensorgrad_wgpu_pin}")

  message(STATUS "Fetching wgpu-native (the wheel pinned in cmake/wgpu-requirements.txt)")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(platform "")
  if(TENSORGRAD_WGPU_PLATFORM)
    set(platform --platform "${TENSORGRAD_WGPU_PLATFORM}")
  endif()
  file(REMOVE_RECURSE "${root}/download" "${root}/wheel"
    "${root}/include" "${root}/lib")
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -m pip --disable-pip-version-check --quiet download
      --no-deps --only-binary :all: --require-hashes ${platform}
      --dest "${root}/download" --requirement "${_tensorgrad_wgpu_pin}"
    RESULT_VARIABLE status ERROR_VARIABLE complaint)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "Could not fetch wgpu-native with pip:\n${complaint}\n"
      "Install pip (Debian: python3-pip), or name an unpacked wgpu-native with "
      "-DTENSORGRAD_WGPU_ROOT=DIR, or build without a GPU with -DTENSORGRAD_WEBGPU=OFF.")
  endif()

  file(GLOB wheel "${root}/download/*.whl")
  file(ARCHIVE_EXTRACT INPUT "${wheel}" DESTINATION "${root}/wheel"
    PATTERNS "wgpu/resources/*" "*/licenses/*")
  file(COPY "${root}/wheel/wgpu/resources/webgpu.h" "${root}/wheel/wgpu/resources/wgpu.h"
    DESTINATION "${root}/include/webgpu")
  file(GLOB library "${root}/wheel/wgpu/resources/*wgpu_native-release*")
  list(LENGTH library count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "Expected one wgpu-native library in ${wheel}, found: ${library}")
  endif()
  cmake_path(GET library FILENAME name)
  string(REPLACE "-release" "" name "${name}")
  file(MAKE_DIRECTORY "${root}/lib")
  file(RENAME "${library}" "${root}/lib/${name}")
  file(REMOVE_RECURSE "${root}/download" "${root}/wheel/wgpu")
  file(WRITE "${root}/complete.txt" "${wanted}")
endfunction()

function(tensorgrad_provide_wgpu_native include_var library_var)
  if(TENSORGRAD_WGPU_ROOT)
    set(root "${TENSORGRAD_WGPU_ROOT}")
  else()
    set(root "${TENSORGRAD_FETCH_DIR}/wgpu-native")
    if(TENSORGRAD_WGPU_PLATFORM)  # beside that of this machine
      string(APPEND root "-${TENSORGRAD_WGPU_PLATFORM}")
    endif()
    _tensorgrad_fetch_wgpu_wheel("${root}")
  endif()
  file(GLOB library "${root}/lib/libwgpu_native.so" "${root}/lib/libwgpu_native.dylib"
    "${root}/lib/wgpu_native.dll")
  if(NOT library OR NOT EXISTS "${root}/include/webgpu/webgpu.h")
    message(FATAL_ERROR "${root} lacks include/webgpu/webgpu.h or lib/libwgpu_native")
  endif()
  file(COPY "${library}" DESTINATION "${CMAKE_BINARY_DIR}/lib")
  cmake_path(GET library FILENAME name)
  set(${include_var} "${root}/include" PARENT_SCOPE)
  set(${library_var} "${CMAKE_BINARY_DIR}/lib/${name}" PARENT_SCOPE)
endfunction()
