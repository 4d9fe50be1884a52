# SPDX-License-Identifier: MIT
# The command-line tool tg: cli/main.cpp over a library of the other files, which tests link too.
file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cli/*.cpp")
if(NOT cli_sources)
  return()
endif()
if(WIN32)
  list(FILTER cli_sources EXCLUDE REGEX "/cli/os/.*_posix.cpp$")
else()
  list(FILTER cli_sources EXCLUDE REGEX "/cli/os/.*_windows.cpp$")
endif()
list(FILTER cli_sources EXCLUDE REGEX "/cli/mpi/")  # cmake/mpi.cmake
# For installations without an rpath. Only there, so that ccache serves the others of all presets.
set_property(SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/cli/run/mpi.cpp" APPEND PROPERTY COMPILE_DEFINITIONS
  "TENSORGRAD_TG_MPI_PATH=\"${CMAKE_INSTALL_FULL_LIBDIR}/tensorgrad/libtg_mpi.so\"")
set(cli_system_sources ${cli_sources})
list(FILTER cli_system_sources INCLUDE REGEX "/cli/os/")
set_source_files_properties(${cli_system_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

add_library(tensorgrad_cli_needs INTERFACE)
target_include_directories(tensorgrad_cli_needs INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}/cli")
target_include_directories(tensorgrad_cli_needs SYSTEM INTERFACE "${TENSORGRAD_STB_INCLUDE_DIR}")
target_link_libraries(tensorgrad_cli_needs INTERFACE tensorgrad::tensorgrad CLI11::CLI11
  fmt::fmt nlohmann_json::nlohmann_json utf8proc::utf8proc ZLIB::ZLIB Threads::Threads)

set(cli_parts ${cli_sources})
list(REMOVE_ITEM cli_parts "${CMAKE_CURRENT_SOURCE_DIR}/cli/main.cpp")
tensorgrad_embed_text(cli_page "ui/page.h" "tensorgrad::cli::page_html" cli/ui/page.html)
if(cli_parts)
  list(APPEND cli_parts "${cli_page}")
  set_source_files_properties("${cli_page}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(tg_parts STATIC ${cli_parts})
  target_link_libraries(tg_parts PUBLIC tensorgrad_cli_needs)
  set_target_properties(tg_parts PROPERTIES UNITY_BUILD_BATCH_SIZE 15)  # CLI11 and JSON take longest
  tensorgrad_own_target(tg_parts)
endif()

if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/cli/main.cpp")
  add_executable(tg "${CMAKE_CURRENT_SOURCE_DIR}/cli/main.cpp")
  target_link_libraries(tg PRIVATE tensorgrad_cli_needs)
  if(TARGET tg_parts)
    target_link_libraries(tg PRIVATE tg_parts)
  endif()
  # The rpath is also where libtg_mpi.so is looked for.
  set(origin "$ORIGIN")
  if(APPLE)
    set(origin "@loader_path")
  endif()
  set(lib "${origin}/../${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(tg PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}"
    BUILD_RPATH "${origin}"
    INSTALL_RPATH "${lib};${lib}/tensorgrad")
  if(TARGET tg_mpi)
    add_dependencies(tg tg_mpi)
  endif()
  tensorgrad_own_target(tg)
endif()
