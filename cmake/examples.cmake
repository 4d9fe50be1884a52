# SPDX-License-Identifier: MIT
# Every examples/x.cpp is a program of its own: <build>/examples/x.
set(examples "")
file(GLOB example_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/examples/*.cpp")
foreach(source IN LISTS example_sources)
  cmake_path(GET source STEM name)
  add_executable(example_${name} "${source}")
  set_target_properties(example_${name} PROPERTIES
    OUTPUT_NAME "${name}" RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/examples")
  target_link_libraries(example_${name} PRIVATE tensorgrad::tensorgrad)
  tensorgrad_own_target(example_${name})
  list(APPEND examples example_${name})
endforeach()
