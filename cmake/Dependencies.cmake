# SPDX-License-Identifier: MIT
# Provides the libraries that the sources need: hwy::hwy, utf8proc::utf8proc, ZLIB::ZLIB and
# nlohmann_json::nlohmann_json, TENSORGRAD_STB_INCLUDE_DIR, and CLI11::CLI11 and fmt::fmt for tg.
#
# Uses the installed libraries. With TENSORGRAD_FETCH_DEPENDENCIES, fetches missing ones with git,
# which needs neither root nor a package manager, and links them statically. Each is pinned by a
# commit hash, which git verifies. Clones are shallow, because full histories are a hundred times as
# large. TENSORGRAD_DEPENDENCIES_FETCHED lists the fetched ones.

option(TENSORGRAD_FETCH_DEPENDENCIES
  "Fetch libraries that the machine lacks with git: Highway, utf8proc, zlib, JSON, stb, fmt, CLI11"
  OFF)
include(FetchOnce)
set(TENSORGRAD_DEPENDENCIES_FETCHED "")

# Fetches a commit of a GitHub repository into TENSORGRAD_FETCH_DIR/dependencies/<name>.
function(_tensorgrad_fetch_commit name repository commit)
  set(folder "${TENSORGRAD_FETCH_DIR}/dependencies/${name}")
  tensorgrad_fetch_once("${folder}" "${commit}")
  message(STATUS "Fetching ${name} (${repository}, ${commit})")
  find_program(git git)
  if(NOT git)
    message(FATAL_ERROR "Fetching ${name} needs git, which is not installed. With root, install "
      "${name} instead (docs/install.md).")
  endif()
  execute_process(WORKING_DIRECTORY "${folder}" COMMAND "${git}" init --quiet
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(WORKING_DIRECTORY "${folder}" RESULT_VARIABLE status ERROR_VARIABLE complaint
    COMMAND "${git}" fetch --quiet --depth 1 "https://github.com/${repository}" ${commit})
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "Could not fetch ${name} with git:\n${complaint}\n"
      "Install ${name} on this machine, or set git's option url.MIRROR.insteadOf to use a mirror.")
  endif()
  execute_process(WORKING_DIRECTORY "${folder}" COMMAND "${git}" checkout --quiet --force ${commit}
    COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE "${folder}/complete.txt" "${wanted}")
endfunction()

# Finds the package in this version or a later one. Otherwise fetches it and adds its CMake project;
# the remaining arguments are variables of that project, as NAME=VALUE.
macro(_tensorgrad_provide package version target repository commit)
  if(TENSORGRAD_FETCH_DEPENDENCIES)
    find_package(${package} ${version} QUIET)
  else()
    find_package(${package} ${version} REQUIRED)
  endif()
  if(NOT TARGET ${target})
    _tensorgrad_fetch_commit(${package} ${repository} ${commit})
    list(APPEND TENSORGRAD_DEPENDENCIES_FETCHED ${package})
    _tensorgrad_add(${package} ${ARGN})
  endif()
endmacro()

# Adds a fetched package as a static library, without its tests, install rules and warnings.
function(_tensorgrad_add package)
  set(BUILD_SHARED_LIBS OFF)
  set(BUILD_TESTING OFF)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_UNITY_BUILD OFF)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # the variables above are options of the package
  set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
  set(CMAKE_WARN_DEPRECATED OFF)
  foreach(setting IN LISTS ARGN)
    string(REGEX MATCH "^([^=]+)=(.*)$" matched "${setting}")
    set(${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  endforeach()
  add_subdirectory("${TENSORGRAD_FETCH_DIR}/dependencies/${package}"
    "${PROJECT_BINARY_DIR}/dependencies/${package}" EXCLUDE_FROM_ALL SYSTEM)
endfunction()

find_package(Threads REQUIRED)
_tensorgrad_provide(hwy 1.0.3 hwy::hwy google/highway
  58746ca5b9f9444a2a3549704602ecc6239f8f41  # 1.0.3
  HWY_ENABLE_TESTS=OFF HWY_ENABLE_EXAMPLES=OFF HWY_ENABLE_CONTRIB=OFF HWY_ENABLE_INSTALL=OFF)
if(NOT TARGET hwy::hwy)
  add_library(hwy::hwy ALIAS hwy)
endif()
_tensorgrad_provide(nlohmann_json "" nlohmann_json::nlohmann_json nlohmann/json
  bc889afb4c5bf1c0d8ee29ef35eaaf4c8bef8a5d  # 3.11.2
  JSON_BuildTests=OFF JSON_Install=OFF)
_tensorgrad_provide(utf8proc "" utf8proc::utf8proc JuliaStrings/utf8proc
  1cb28a66ca79a0845e99433fd1056257456cef8b)  # 2.8.0
if(NOT TARGET utf8proc::utf8proc)
  add_library(utf8proc::utf8proc ALIAS utf8proc)
endif()
if(TENSORGRAD_BUILD_CLI OR TENSORGRAD_BUILD_BENCH)
  _tensorgrad_provide(fmt "" fmt::fmt fmtlib/fmt
    a33701196adfad74917046096bf5a2aa0ab0bb50)  # 9.1.0
  _tensorgrad_provide(CLI11 "" CLI11::CLI11 CLIUtils/CLI11
    70f8072f9dd2292fd0b9f9e5f58e279f60483ed3)  # 2.1.2
endif()

# zlib's own rules rename a header in its sources, and stb has none.
find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND AND TENSORGRAD_FETCH_DEPENDENCIES)
  _tensorgrad_fetch_commit(zlib madler/zlib 51b7f2abdade71cd9bb0e7a373ef2610ec6f9daf)  # 1.3.1
  list(APPEND TENSORGRAD_DEPENDENCIES_FETCHED zlib)
  enable_language(C)
  file(GLOB _zlib_sources "${TENSORGRAD_FETCH_DIR}/dependencies/zlib/*.c")
  add_library(zlib STATIC EXCLUDE_FROM_ALL ${_zlib_sources})
  target_compile_definitions(zlib PRIVATE Z_HAVE_UNISTD_H)
  target_include_directories(zlib SYSTEM PUBLIC "${TENSORGRAD_FETCH_DIR}/dependencies/zlib")
  set_target_properties(zlib PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
  add_library(ZLIB::ZLIB ALIAS zlib)
elseif(NOT ZLIB_FOUND)
  find_package(ZLIB REQUIRED)
endif()
find_path(TENSORGRAD_STB_INCLUDE_DIR stb/stb_image.h)
mark_as_advanced(TENSORGRAD_STB_INCLUDE_DIR)
if(NOT TENSORGRAD_STB_INCLUDE_DIR AND TENSORGRAD_FETCH_DEPENDENCIES)
  _tensorgrad_fetch_commit(stb nothings/stb 8b5f1f37b5b75829fc72d38e7b5d4bcbf8a26d55)
  list(APPEND TENSORGRAD_DEPENDENCIES_FETCHED stb)
  set(TENSORGRAD_STB_INCLUDE_DIR "${TENSORGRAD_FETCH_DIR}/dependencies")
elseif(NOT TENSORGRAD_STB_INCLUDE_DIR)
  find_path(TENSORGRAD_STB_INCLUDE_DIR stb/stb_image.h REQUIRED)
endif()
