# SPDX-License-Identifier: MIT
# Builds the projects of examples/projects/ outside the tree, as a user of the library would.
if(NOT TENSORGRAD_INSTALL)
  return()
endif()
set(flags "")
if(TENSORGRAD_SANITIZE)
  set(flags "-fsanitize=${TENSORGRAD_SANITIZE}")
endif()
foreach(way IN ITEMS find_package fetch_content)
  add_test(NAME package.${way} COMMAND "${Python3_EXECUTABLE}" -B
    "${CMAKE_CURRENT_SOURCE_DIR}/package/check_package.py" ${way}
    --source "${PROJECT_SOURCE_DIR}" --build "${CMAKE_BINARY_DIR}" --cmake "${CMAKE_COMMAND}"
    --compiler "${CMAKE_CXX_COMPILER}" "--flags=${flags}" --fetched "${TENSORGRAD_FETCH_DIR}"
    --webgpu "${TENSORGRAD_WEBGPU}")
  set_tests_properties(package.${way} PROPERTIES
    LABELS "package;slow" TIMEOUT 1800 PROCESSORS 2 ENVIRONMENT "${test_environment}")
endforeach()
