# SPDX-License-Identifier: MIT
# What describes the public headers, and the C++ that is generated of that: of the npm package (web/),
# and for calls of ops by name (tests/differential).
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(TENSORGRAD_API_PYTHON "${PROJECT_SOURCE_DIR}/build/api-venv/bin/python" CACHE FILEPATH
  "Python with what tools/api-requirements.txt names")

set(web "${PROJECT_SOURCE_DIR}/web")
set(api "${CMAKE_BINARY_DIR}/web/api.json")
set(generated "${CMAKE_BINARY_DIR}/web/generated")

# Makes the target tensorgrad_web_generated, which writes ${api}, ${generated} and TypeScript.
function(tensorgrad_generate_bindings typescript)
  file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.h")
  add_custom_command(OUTPUT "${api}"
    COMMAND "${TENSORGRAD_API_PYTHON}" -B "${PROJECT_SOURCE_DIR}/tools/describe_api.py" "${api}"
    DEPENDS "${PROJECT_SOURCE_DIR}/tools/describe_api.py" ${public_headers} VERBATIM
    COMMENT "Describing the public headers")
  add_custom_command(OUTPUT "${generated}/ops.inc"
    COMMAND "${Python3_EXECUTABLE}" -B "${web}/generate.py" "${api}" "${generated}" "${typescript}"
    COMMAND "${CMAKE_COMMAND}" -E touch "${generated}/ops.inc"
    DEPENDS "${web}/generate.py" "${api}" VERBATIM
    COMMENT "Generating the bindings")
  add_custom_target(tensorgrad_web_generated DEPENDS "${generated}/ops.inc")
endfunction()
