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
