# SPDX-License-Identifier: MIT
# Builds examples/projects/find_package outside the tree, as a user of the library would.
# ./dev portability builds fetch_content, with two other compilers.
if(NOT TENSORGRAD_INSTALL)
  return()
endif()
set(flags "")
if(TENSORGRAD_SANITIZE)
  set(flags "-fsanitize=${TENSORGRAD_SANITIZE}")
endif()
set(options "-DBUILD_SHARED_LIBS=${BUILD_SHARED_LIBS}" "-DTENSORGRAD_MPI=${TENSORGRAD_MPI}"
  "-DTENSORGRAD_WEBGPU=${TENSORGRAD_WEBGPU}")
if(TENSORGRAD_WEBGPU)
  cmake_path(GET wgpu_include PARENT_PATH wgpu_root)
  list(APPEND options "-DTENSORGRAD_WGPU_ROOT=${wgpu_root}")
endif()
list(TRANSFORM options PREPEND "--option=")
add_test(NAME package.find_package COMMAND "${Python3_EXECUTABLE}" -B
  "${CMAKE_CURRENT_SOURCE_DIR}/package/check_package.py" find_package
  --build "${CMAKE_BINARY_DIR}" --cmake "${CMAKE_COMMAND}"
  --compiler "${CMAKE_CXX_COMPILER}" "--flags=${flags}" ${options})
set_tests_properties(package.find_package PROPERTIES
  LABELS "package;slow" TIMEOUT 1800 PROCESSORS 2 ENVIRONMENT "${test_environment}")
