# SPDX-License-Identifier: MIT
# The WebAssembly module of the npm package (web/): C++ bindings over the public headers, most of them
# generated. `./dev npm` builds the package.
set(TENSORGRAD_WEB_LINK_LEVEL "-Oz" CACHE STRING "How hard to optimize the module: -O1 links fast")

include("${CMAKE_CURRENT_LIST_DIR}/bindings.cmake")
tensorgrad_generate_bindings("${web}/src/generated")

# Two modules of the same objects: `tensorgrad` is what training needs, `full` also has language
# models, tokenizers and the export to ONNX. A build with threads (the preset web-threads) makes
# `threads` and `full_threads` instead, which have no WebGPU.
file(GLOB bindings CONFIGURE_DEPENDS "${web}/bindings/*.cpp")
add_library(tensorgrad_web_bindings OBJECT EXCLUDE_FROM_ALL ${bindings})
add_dependencies(tensorgrad_web_bindings tensorgrad_web_generated)
target_link_libraries(tensorgrad_web_bindings PRIVATE tensorgrad_private)
if(TENSORGRAD_WEBGPU)
  target_sources(tensorgrad_web_bindings PRIVATE "${web}/bindings/webgpu/left_out.cpp")
  set_source_files_properties("${web}/bindings/webgpu/left_out.cpp" PROPERTIES
    COMPILE_OPTIONS "-isystem;${wgpu_include}")
endif()
# Only JavaScript calls what it exports.
set_source_files_properties("${web}/bindings/exports.cpp" PROPERTIES
  COMPILE_OPTIONS -Wno-missing-prototypes)
function(tensorgrad_web_module target folder name)
  file(GLOB own CONFIGURE_DEPENDS "${web}/bindings/${folder}/*.cpp")
  add_executable(${target} EXCLUDE_FROM_ALL ${own} $<TARGET_OBJECTS:tensorgrad_web_bindings>)
  add_dependencies(${target} tensorgrad_web_generated)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX .mjs
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/web")
  target_link_options(${target} PRIVATE ${TENSORGRAD_WEB_LINK_LEVEL} --no-entry
    -sMODULARIZE -sEXPORT_ES6 -sEXPORT_NAME=makeModule -sEXPORTED_FUNCTIONS=_malloc,_free
    -sMALLOC=emmalloc -sFILESYSTEM=0
    -Wl,--allow-multiple-definition)  # left_out.cpp replaces definitions of the library
  if(TENSORGRAD_WASM_THREADS)
    # web/src/instance.ts starts the workers. If they do not suffice, there are fewer threads; to
    # wait for another worker would block the program forever. Workers load a file of this name.
    set_target_properties(${target} PROPERTIES SUFFIX .js)
    target_link_options(${target} PRIVATE -sENVIRONMENT=web,worker,node
      -sEXPORTED_RUNTIME_METHODS=wasmMemory,PThread -sPTHREAD_POOL_SIZE_STRICT=2
      -sDEFAULT_PTHREAD_STACK_SIZE=2MB
      -sINCOMING_MODULE_JS_API=instantiateWasm,print,printErr,mainScriptUrlOrBlob)
  else()
    target_link_options(${target} PRIVATE -sENVIRONMENT=web,worker
      -sEXPORTED_RUNTIME_METHODS=HEAPU8 -sINCOMING_MODULE_JS_API=instantiateWasm,print,printErr
      -sJSPI -sJSPI_EXPORTS=tgw_request)
  endif()
  set_property(TARGET ${target} APPEND PROPERTY
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/src/backend/webgpu/browser.js")
endfunction()
if(TENSORGRAD_WASM_THREADS)
  tensorgrad_web_module(tensorgrad_web_full full full_threads)
  tensorgrad_web_module(tensorgrad_web core threads)
else()
  tensorgrad_web_module(tensorgrad_web_full full full)
  tensorgrad_web_module(tensorgrad_web core tensorgrad)
endif()
add_dependencies(tensorgrad_web tensorgrad_web_full)
target_link_libraries(tensorgrad_web PRIVATE tensorgrad_private)
foreach(target IN ITEMS tensorgrad_web_bindings tensorgrad_web_full tensorgrad_web)
  tensorgrad_own_target(${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  target_compile_options(${target} PRIVATE -Oz)
  target_include_directories(${target} PRIVATE "${web}/bindings" "${generated}")
  target_link_libraries(${target} PRIVATE tensorgrad)
endforeach()

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
