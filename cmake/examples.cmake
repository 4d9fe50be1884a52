# SPDX-License-Identifier: MIT
# Every examples/x.cpp is a program of its own, <build>/examples/x; examples/common is linked into
# all of them.
include(SampleData)
tensorgrad_provide_sample_data(sample_data)
file(GLOB common_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/examples/common/*.cpp")
add_library(example_common STATIC ${common_sources})
if(EMSCRIPTEN)  # web/pages/samples_worker.ts puts the data there, and runs the samples
  set(sample_data "/data")
  target_link_options(example_common PUBLIC -O1 -sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=worker
    -sINVOKE_RUN=0 -sFORCE_FILESYSTEM -sEXPORTED_RUNTIME_METHODS=callMain,FS)
endif()
set_source_files_properties("${CMAKE_CURRENT_SOURCE_DIR}/examples/common/sample.cpp" PROPERTIES
  COMPILE_DEFINITIONS "TENSORGRAD_SAMPLE_DATA=\"${sample_data}\"")
target_link_libraries(example_common PUBLIC tensorgrad::tensorgrad)
target_include_directories(example_common PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/examples")
target_include_directories(example_common SYSTEM PRIVATE "${TENSORGRAD_STB_INCLUDE_DIR}")
# Every sample reads it: that takes longer than most samples.
target_precompile_headers(example_common PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/examples/common/sample.h")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(example_common PUBLIC -fpch-preprocess)  # for ccache
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  # What computes is the library.
  target_compile_options(example_common PUBLIC "$<$<CONFIG:Release>:-O1>")
endif()
tensorgrad_own_target(example_common)
set(examples "")
file(GLOB example_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/examples/*.cpp")
if(NOT TENSORGRAD_WEBGPU OR EMSCRIPTEN)  # it is linked to a WebGPU library
  list(FILTER example_sources EXCLUDE REGEX "/own_device.cpp$")
endif()
foreach(source IN LISTS example_sources)
  cmake_path(GET source STEM name)
  add_executable(example_${name} "${source}")
  set_target_properties(example_${name} PROPERTIES
    OUTPUT_NAME "${name}" RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/examples")
  target_link_libraries(example_${name} PRIVATE example_common)
  target_precompile_headers(example_${name} REUSE_FROM example_common)
  if(name STREQUAL "own_device")  # an application that is linked to WebGPU itself
    target_include_directories(example_${name} SYSTEM PRIVATE "${wgpu_include}")
    target_link_libraries(example_${name} PRIVATE "${wgpu_library}")
  endif()
  tensorgrad_own_target(example_${name})
  list(APPEND examples example_${name})
endforeach()
add_custom_target(samples DEPENDS ${examples})
