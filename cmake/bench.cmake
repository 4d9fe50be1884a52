# SPDX-License-Identifier: MIT
# bench/*.cpp is one program, <build>/tg_bench; its models are a library, for tests that count what
# they are compiled to. bench/peers is built by bench/run.py, against what it finds. Products are
# measured beside Eigen, OpenBLAS and oneDNN where these are installed (TENSORGRAD_BENCH_EIGEN,
# TENSORGRAD_BENCH_OPENBLAS, TENSORGRAD_BENCH_ONEDNN); the library uses none of them.
file(GLOB bench_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/bench/*.cpp")
if(NOT bench_sources)
  return()
endif()
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)

list(REMOVE_ITEM bench_sources "${CMAKE_CURRENT_SOURCE_DIR}/bench/models.cpp")
add_library(bench_models STATIC "${CMAKE_CURRENT_SOURCE_DIR}/bench/models.cpp")
target_include_directories(bench_models PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/bench")
target_link_libraries(bench_models PUBLIC tensorgrad::tensorgrad)
tensorgrad_own_target(bench_models)

add_executable(tg_bench ${bench_sources})
set_target_properties(tg_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
target_link_libraries(tg_bench PRIVATE bench_models CLI11::CLI11 fmt::fmt-header-only
  nlohmann_json::nlohmann_json Threads::Threads)
set_target_properties(tg_bench PROPERTIES UNITY_BUILD OFF)
tensorgrad_own_target(tg_bench)

find_package(Eigen3 QUIET NO_MODULE)
if(TARGET Eigen3::Eigen)
  target_link_libraries(tg_bench PRIVATE Eigen3::Eigen)
  target_compile_definitions(tg_bench PRIVATE TENSORGRAD_BENCH_EIGEN=1)
  # The others choose their instructions at run time.
  set_source_files_properties("${CMAKE_CURRENT_SOURCE_DIR}/bench/eigen_gemm.cpp"
    PROPERTIES COMPILE_OPTIONS -march=native)
endif()
find_package(OpenBLAS QUIET)
if(OpenBLAS_FOUND)
  target_include_directories(tg_bench SYSTEM PRIVATE ${OpenBLAS_INCLUDE_DIRS})
  target_link_libraries(tg_bench PRIVATE ${OpenBLAS_LIBRARIES})
  target_compile_definitions(tg_bench PRIVATE TENSORGRAD_BENCH_OPENBLAS=1)
endif()
# Not by its own package file, which asks for OpenCL.
find_path(TENSORGRAD_ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h)
find_library(TENSORGRAD_ONEDNN_LIBRARY dnnl)
mark_as_advanced(TENSORGRAD_ONEDNN_INCLUDE_DIR TENSORGRAD_ONEDNN_LIBRARY)
if(TENSORGRAD_ONEDNN_INCLUDE_DIR AND TENSORGRAD_ONEDNN_LIBRARY)
  target_include_directories(tg_bench SYSTEM PRIVATE "${TENSORGRAD_ONEDNN_INCLUDE_DIR}")
  target_link_libraries(tg_bench PRIVATE "${TENSORGRAD_ONEDNN_LIBRARY}" ${CMAKE_DL_LIBS})
  target_compile_definitions(tg_bench PRIVATE TENSORGRAD_BENCH_ONEDNN=1)
endif()
