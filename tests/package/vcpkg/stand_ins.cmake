# SPDX-License-Identifier: MIT
# Runs a portfile without vcpkg. Defines the functions of vcpkg that the portfile calls, for one
# build type. They fail if vcpkg would reject their arguments.
#
#   cmake -DCURRENT_PACKAGES_DIR=... -DCURRENT_BUILDTREES_DIR=... -DCURRENT_INSTALLED_DIR=...
#     -DPORT=... -DFEATURES=... -DPORTFILE=... -P stand_ins.cmake
cmake_minimum_required(VERSION 3.25)

function(require_file path)
  if(NOT EXISTS "${path}")
    message(FATAL_ERROR "The port lacks ${path}")
  endif()
endfunction()

# Fails on unknown arguments, as vcpkg does.
macro(parse_all single multi)
  cmake_parse_arguments(arg "" "${single}" "${multi}" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION}: unexpected arguments: "
      "${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
endmacro()

function(vcpkg_check_features)
  parse_all(OUT_FEATURE_OPTIONS FEATURES ${ARGN})
  set(options "")
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature variable)
    if(feature IN_LIST FEATURES)
      list(APPEND options "-D${variable}=ON")
    else()
      list(APPEND options "-D${variable}=OFF")
    endif()
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} "${options}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  parse_all(SOURCE_PATH OPTIONS ${ARGN})
  require_file("${arg_SOURCE_PATH}/CMakeLists.txt")
  execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND "${CMAKE_COMMAND}" -G Ninja -S "${arg_SOURCE_PATH}" -B "${CURRENT_BUILDTREES_DIR}/rel"
      "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" -DBUILD_SHARED_LIBS=OFF ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  parse_all("" "" ${ARGN})
  execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND "${CMAKE_COMMAND}" --build "${CURRENT_BUILDTREES_DIR}/rel" --target install)
endfunction()

# vcpkg moves these files to share/ and changes the paths in them.
function(vcpkg_cmake_config_fixup)
  parse_all(CONFIG_PATH "" ${ARGN})
  require_file("${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/${PORT}-config.cmake")
  require_file("${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/${PORT}-targets.cmake")
endfunction()

function(vcpkg_fixup_pkgconfig)
  parse_all("" "" ${ARGN})
  require_file("${CURRENT_PACKAGES_DIR}/lib/pkgconfig/${PORT}.pc")
endfunction()

function(vcpkg_install_copyright)
  parse_all("" FILE_LIST ${ARGN})
  set(text "")
  foreach(file IN LISTS arg_FILE_LIST)
    file(READ "${file}" more)
    string(APPEND text "${more}\n")
  endforeach()
  file(WRITE "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright" "${text}")
endfunction()

include("${PORTFILE}")

# Some of the checks that vcpkg makes afterwards.
require_file("${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
require_file("${CURRENT_PACKAGES_DIR}/share/${PORT}/usage")
file(GLOB left RELATIVE "${CURRENT_PACKAGES_DIR}" "${CURRENT_PACKAGES_DIR}/*")
list(REMOVE_ITEM left include lib share)
if(left)
  message(FATAL_ERROR "The package has unexpected folders: ${left}")
endif()
