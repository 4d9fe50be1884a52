# SPDX-License-Identifier: MIT
# tensorgrad::mpi: distributed training over MPI. A library of its own, so that tensorgrad itself does
# not need MPI.
set(MPI_CXX_SKIP_MPICXX TRUE)  # only the functions of C are called
if(TENSORGRAD_MPI STREQUAL "AUTO")
  # MPI itself leaks memory at exit, which AddressSanitizer reports.
  if(TENSORGRAD_BUILD_TESTS AND NOT TENSORGRAD_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
elseif(TENSORGRAD_MPI)
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
if(NOT MPI_CXX_FOUND)
  return()
endif()

add_library(tensorgrad_mpi "${CMAKE_CURRENT_SOURCE_DIR}/src/mpi/mpi.cpp")
add_library(tensorgrad::mpi ALIAS tensorgrad_mpi)
set_target_properties(tensorgrad_mpi PROPERTIES
  EXPORT_NAME mpi
  POSITION_INDEPENDENT_CODE ON
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(tensorgrad_mpi PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
target_link_libraries(tensorgrad_mpi PUBLIC tensorgrad PRIVATE MPI::MPI_CXX)
tensorgrad_own_target(tensorgrad_mpi)

# What the tool tg loads if it trains over MPI. It has its own copy of the few parts of tensorgrad that
# it needs: the tool may be linked to a static library.
if(TENSORGRAD_BUILD_CLI AND NOT WIN32)
  add_library(tg_mpi MODULE
    "${CMAKE_CURRENT_SOURCE_DIR}/cli/mpi/join.cpp"
    "${CMAKE_CURRENT_SOURCE_DIR}/src/mpi/mpi.cpp"
    "${CMAKE_CURRENT_SOURCE_DIR}/src/train/communicator.cpp"
    "${CMAKE_CURRENT_SOURCE_DIR}/src/base/error.cpp"
    "${CMAKE_CURRENT_SOURCE_DIR}/src/base/numbers.cpp"
    "${CMAKE_CURRENT_SOURCE_DIR}/src/base/os/locale_posix.cpp")
  set_target_properties(tg_mpi PROPERTIES
    PREFIX lib
    SUFFIX .so  # cli/mpi/interface.h
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    UNITY_BUILD OFF
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  target_include_directories(tg_mpi PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/cli"
    "${CMAKE_CURRENT_SOURCE_DIR}/src" "${CMAKE_CURRENT_SOURCE_DIR}/include")
  target_compile_features(tg_mpi PRIVATE cxx_std_20)
  target_link_libraries(tg_mpi PRIVATE MPI::MPI_CXX)
  tensorgrad_own_target(tg_mpi)
endif()
