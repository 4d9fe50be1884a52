# SPDX-License-Identifier: MIT
# The programs behind ./dev differential, which needs Python packages that the tests do not.
include("${PROJECT_SOURCE_DIR}/cmake/bindings.cmake")
tensorgrad_generate_bindings("${CMAKE_BINARY_DIR}/web/typescript")
set(bindings callbacks convert layer_tables model tables tracing update_ops value)
list(TRANSFORM bindings PREPEND "${web}/bindings/")
list(TRANSFORM bindings APPEND ".cpp")
add_executable(differential_runner EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/runner.cpp" ${bindings})
add_dependencies(differential_runner tensorgrad_web_generated)
set_target_properties(differential_runner PROPERTIES UNITY_BUILD OFF)
# It traces small programs: most of its time is the library's.
target_compile_options(differential_runner PRIVATE -O0)
target_include_directories(differential_runner PRIVATE "${web}/bindings" "${generated}")
target_link_libraries(differential_runner PRIVATE tensorgrad::tensorgrad tensorgrad_private)

add_executable(state_dicts EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/state_dicts.cpp")
set_target_properties(state_dicts PROPERTIES UNITY_BUILD OFF)
target_link_libraries(state_dicts PRIVATE tensorgrad::tensorgrad)
tensorgrad_own_target(state_dicts)
