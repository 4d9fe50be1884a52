# SPDX-License-Identifier: MIT
# Every ```cpp block with a main() in README.md and docs/ is a program that must build and run.
file(GLOB documents CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/README.md"
  "${PROJECT_SOURCE_DIR}/docs/*.md" "${PROJECT_SOURCE_DIR}/docs/internals/*.md")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${documents}
  "${PROJECT_SOURCE_DIR}/tools/extract_programs.py")
execute_process(
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/extract_programs.py"
    "${CMAKE_CURRENT_BINARY_DIR}/documents" ${documents}
  OUTPUT_VARIABLE programs OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" programs "${programs}")
foreach(source IN LISTS programs)
  cmake_path(GET source STEM name)
  add_executable(document_${name} "${source}")
  target_link_libraries(document_${name} PRIVATE tensorgrad::tensorgrad)
  # Of the project's warnings, only those that readers are likely to turn on.
  if(TENSORGRAD_WERROR AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(document_${name} PRIVATE
      -Wextra -Werror -Wno-error=maybe-uninitialized)
  endif()
  if(TENSORGRAD_SANITIZE)
    target_compile_options(document_${name} PRIVATE "-fsanitize=${TENSORGRAD_SANITIZE}")
  endif()
  add_test(NAME documents.${name} COMMAND document_${name})
  set_tests_properties(documents.${name} PROPERTIES
    LABELS "documents;slow" ENVIRONMENT "${test_environment}")
endforeach()
