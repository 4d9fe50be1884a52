# SPDX-License-Identifier: MIT
# Every examples/x.cpp is a program of its own, <build>/examples/x; examples/common is linked into
# all of them.
include(SampleData)
tensorgrad_provide_sample_data(sample_data)
file(GLOB common_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/examples/common/*.cpp")
add_library(example_common STATIC ${common_sources})
target_compile_definitions(example_common PRIVATE "TENSORGRAD_SAMPLE_DATA=\"${sample_data}\"")
target_link_libraries(example_common PUBLIC tensorgrad::tensorgrad)
target_include_directories(example_common PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/examples")
target_include_directories(example_common SYSTEM PRIVATE "${TENSORGRAD_STB_INCLUDE_DIR}")
tensorgrad_own_target(example_common)
set(examples "")
file(GLOB example_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/examples/*.cpp")
foreach(source IN LISTS example_sources)
  cmake_path(GET source STEM name)
  add_executable(example_${name} "${source}")
  set_target_properties(example_${name} PROPERTIES
    OUTPUT_NAME "${name}" RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/examples")
  target_link_libraries(example_${name} PRIVATE example_common)
  tensorgrad_own_target(example_${name})
  list(APPEND examples example_${name})
endforeach()
