# SPDX-License-Identifier: MIT
# The WebAssembly module of the npm package (web/): C++ bindings over the public headers, most of them
# generated. `./dev npm` builds the package.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(TENSORGRAD_API_PYTHON "${PROJECT_SOURCE_DIR}/build/api-venv/bin/python" CACHE FILEPATH
  "Python with what tools/api-requirements.txt names")
set(TENSORGRAD_WEB_LINK_LEVEL "-Oz" CACHE STRING "How hard to optimize the module: -O1 links fast")

set(web "${PROJECT_SOURCE_DIR}/web")
set(api "${CMAKE_BINARY_DIR}/web/api.json")
set(generated "${CMAKE_BINARY_DIR}/web/generated")
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.h")
add_custom_command(OUTPUT "${api}"
  COMMAND "${TENSORGRAD_API_PYTHON}" -B "${PROJECT_SOURCE_DIR}/tools/describe_api.py" "${api}"
  DEPENDS "${PROJECT_SOURCE_DIR}/tools/describe_api.py" ${public_headers} VERBATIM
  COMMENT "Describing the public headers")
add_custom_command(OUTPUT "${generated}/ops.inc"
  COMMAND "${Python3_EXECUTABLE}" -B "${web}/generate.py" "${api}" "${generated}"
    "${web}/src/generated"
  COMMAND "${CMAKE_COMMAND}" -E touch "${generated}/ops.inc"
  DEPENDS "${web}/generate.py" "${api}" VERBATIM
  COMMENT "Generating the bindings")
add_custom_target(tensorgrad_web_generated DEPENDS "${generated}/ops.inc")

file(GLOB bindings CONFIGURE_DEPENDS "${web}/bindings/*.cpp")
add_executable(tensorgrad_web EXCLUDE_FROM_ALL ${bindings})
add_dependencies(tensorgrad_web tensorgrad_web_generated)
tensorgrad_own_target(tensorgrad_web)
target_compile_options(tensorgrad_web PRIVATE -Os)
set_target_properties(tensorgrad_web PROPERTIES OUTPUT_NAME tensorgrad SUFFIX .mjs UNITY_BUILD OFF
  RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/web")
# Only JavaScript calls what it exports.
set_source_files_properties("${web}/bindings/exports.cpp" PROPERTIES
  COMPILE_OPTIONS -Wno-missing-prototypes)
target_include_directories(tensorgrad_web PRIVATE "${web}/bindings" "${generated}")
target_link_libraries(tensorgrad_web PRIVATE tensorgrad)
target_link_options(tensorgrad_web PRIVATE ${TENSORGRAD_WEB_LINK_LEVEL} --no-entry
  -sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=web,worker -sEXPORT_NAME=makeModule
  -sEXPORTED_FUNCTIONS=_malloc,_free -sEXPORTED_RUNTIME_METHODS=HEAPU8
  -sINCOMING_MODULE_JS_API=instantiateWasm,print,printErr -sMALLOC=emmalloc
  -sJSPI -sJSPI_EXPORTS=tgw_request)
set_property(TARGET tensorgrad_web APPEND PROPERTY
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/src/backend/webgpu/browser.js")

# What the package is compared with: the same models and ops in C++.
set(cases "${CMAKE_BINARY_DIR}/web/cases")
add_custom_command(OUTPUT "${cases}/cases.inc" "${CMAKE_BINARY_DIR}/web/cases.json"
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${cases}"
  COMMAND "${Python3_EXECUTABLE}" -B "${web}/tests/cases.py" "${api}" "${cases}/cases.inc"
    "${CMAKE_BINARY_DIR}/web/cases.json"
  DEPENDS "${web}/tests/cases.py" "${web}/generate.py" "${api}" VERBATIM)
add_executable(web_golden EXCLUDE_FROM_ALL "${web}/tests/golden.cpp" "${cases}/cases.inc")
set_target_properties(web_golden PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/web")
target_include_directories(web_golden PRIVATE "${cases}")
target_compile_options(web_golden PRIVATE -O0)
target_link_libraries(web_golden PRIVATE tensorgrad)
target_link_options(web_golden PRIVATE -O1 -sNODERAWFS -sEXIT_RUNTIME)

# Steps on the CPU in node, which bench/web compares with tg_bench.
set(bench "${PROJECT_SOURCE_DIR}/bench")
add_executable(cpu_steps EXCLUDE_FROM_ALL "${bench}/web/cpu_steps.cpp" "${bench}/measure.cpp"
  "${bench}/models.cpp" "${bench}/workloads.cpp")
set_target_properties(cpu_steps PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/web")
target_include_directories(cpu_steps PRIVATE "${bench}")
target_link_libraries(cpu_steps PRIVATE tensorgrad)
target_link_options(cpu_steps PRIVATE ${TENSORGRAD_WEB_LINK_LEVEL} -sNODERAWFS -sEXIT_RUNTIME)
