# SPDX-License-Identifier: MIT
# Build settings of our own targets: nothing here reaches a project that uses the library.

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Kind of build" FORCE)
  endif()
  find_program(TENSORGRAD_CCACHE ccache)
  mark_as_advanced(TENSORGRAD_CCACHE)
  if(TENSORGRAD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Paths are hashed relative to the build folder, so that presets share objects.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
      CCACHE_ABSSTDERR=true "${TENSORGRAD_CCACHE}")
  endif()
  find_program(TENSORGRAD_MOLD mold)  # links many times faster than ld
  mark_as_advanced(TENSORGRAD_MOLD)
  if(TENSORGRAD_MOLD AND NOT CMAKE_CROSSCOMPILING AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
      AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# Warnings and sanitizers for a target of ours.
function(tensorgrad_own_target target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    # Objects do not depend on the folder of the clone: ccache serves all clones.
    target_compile_options(${target} PRIVATE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
  endif()
  if(TENSORGRAD_WARNINGS AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow
      $<$<CXX_COMPILER_ID:GNU>:-Wmissing-declarations>
      $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wmissing-prototypes>
      $<$<BOOL:${TENSORGRAD_WERROR}>:-Werror>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # GCC 12 and 13 report overlapping copies inside std::string that do not exist; the others
      # depend on what was inlined and are often wrong, so they are shown but stop nothing.
      target_compile_options(${target} PRIVATE -Wno-restrict -Wno-error=maybe-uninitialized
        -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=stringop-overread
        -Wno-error=dangling-pointer)
    endif()
  endif()
  if(TENSORGRAD_SANITIZE)
    set(flags "-fsanitize=${TENSORGRAD_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
    if(TENSORGRAD_SANITIZE MATCHES "undefined")
      # AddressSanitizer reports what is read through a null pointer, or one beyond its object, as
      # well; as checks of each access, these take long to compile.
      list(APPEND flags -fno-sanitize=null,alignment,vptr,pointer-overflow,object-size)
    endif()
    if(NOT TENSORGRAD_SANITIZE_LIBRARY_ALONE)
      target_compile_options(${target} PRIVATE ${flags})
    endif()
    # A static library hands its sanitizers on to whatever links it in this build.
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      target_link_options(${target} PUBLIC "$<BUILD_INTERFACE:-fsanitize=${TENSORGRAD_SANITIZE}>")
    else()
      target_link_options(${target} PRIVATE "-fsanitize=${TENSORGRAD_SANITIZE}")
    endif()
  endif()
endfunction()
