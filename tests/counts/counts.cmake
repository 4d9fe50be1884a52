# SPDX-License-Identifier: MIT
# Instructions of the host's hot paths under valgrind. Only in Release builds, because valgrind does
# not run with sanitizers, and counts of unoptimized code say nothing.
add_test(NAME counts.host_selftest
  COMMAND "${Python3_EXECUTABLE}" -B "${CMAKE_CURRENT_LIST_DIR}/host_counts_test.py")
set_tests_properties(counts.host_selftest PROPERTIES LABELS "counts;fast;released")
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR TENSORGRAD_SANITIZE OR NOT TENSORGRAD_WEBGPU)
  return()
endif()
add_executable(host_work "${CMAKE_CURRENT_LIST_DIR}/host_work.cc")
target_link_libraries(host_work PRIVATE bench_models)
target_compile_options(host_work PRIVATE -O3)
tensorgrad_own_target(host_work)
add_library(idle_webgpu SHARED "${CMAKE_CURRENT_LIST_DIR}/idle_webgpu.cc")
target_link_libraries(idle_webgpu PRIVATE tensorgrad_private)
target_include_directories(idle_webgpu SYSTEM PRIVATE "${wgpu_include}")
set_target_properties(idle_webgpu PROPERTIES UNITY_BUILD OFF)
tensorgrad_own_target(idle_webgpu)
add_dependencies(released host_work idle_webgpu)
# Tests that need the library are compiled only in this build.
target_compile_definitions(counts_tests PRIVATE "TENSORGRAD_IDLE_WEBGPU=\"$<TARGET_FILE:idle_webgpu>\"")
add_dependencies(counts_tests idle_webgpu)
string(REGEX MATCH "^[0-9]+" compiler_major "${CMAKE_CXX_COMPILER_VERSION}")
add_test(NAME counts.host COMMAND "${Python3_EXECUTABLE}" -B "${CMAKE_CURRENT_LIST_DIR}/host_counts.py"
  --program "$<TARGET_FILE:host_work>" --library "$<TARGET_FILE:idle_webgpu>"
  --compiler "${CMAKE_CXX_COMPILER_ID} ${compiler_major}, ${CMAKE_SYSTEM_PROCESSOR}"
  --folder "${CMAKE_CURRENT_BINARY_DIR}/host_counts")
# A skipped test prints the reason.
set_tests_properties(counts.host PROPERTIES LABELS "counts;released" SKIP_RETURN_CODE 77 PROCESSORS 2)
