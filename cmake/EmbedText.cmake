# SPDX-License-Identifier: MIT
# Text files of the repository as functions of the library that return them.
#
#   tensorgrad_embed_text(<source-var> <header> <function> <file>...)
#
# writes a source file that defines each function, `std::string_view function()` of the header, and
# sets its path. The build is configured again if a text changes.

function(tensorgrad_embed_text source_var header)
  set(text "// Made by CMake.\n#include \"${header}\"\n")
  while(ARGN)
    list(POP_FRONT ARGN function file)
    set(path "${PROJECT_SOURCE_DIR}/${file}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    file(READ "${path}" body)
    string(APPEND text "std::string_view ${function}() {\n  return R\"text(${body})text\";\n}\n")
  endwhile()
  set(source "${PROJECT_BINARY_DIR}/embedded/${source_var}.cpp")
  set(before "")
  if(EXISTS "${source}")
    file(READ "${source}" before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE "${source}" "${text}")
  endif()
  set(${source_var} "${source}" PARENT_SCOPE)
endfunction()
