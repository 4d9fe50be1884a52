# SPDX-License-Identifier: MIT
# What is fetched once into a folder, by one build tree at a time, and again when a pin changes.
#
#   tensorgrad_fetch_once(<folder> <more> <pin>...)
#
# called first in a function: returns from it where the folder holds what the pins (files) and
# `more` ask for. Else `wanted` is set; the function fetches, and at last writes that to the folder's
# complete.txt, so that an interrupted fetch starts over.

macro(tensorgrad_fetch_once folder more)
  file(MAKE_DIRECTORY "${folder}")
  file(LOCK "${folder}" DIRECTORY GUARD FUNCTION TIMEOUT 600)
  if(NOT CMAKE_SCRIPT_MODE_FILE)
    set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  endif()
  set(wanted "${more}")
  foreach(pin ${ARGN})
    file(SHA256 "${pin}" hash)
    string(APPEND wanted " ${hash}")
  endforeach()
  set(have "")
  if(EXISTS "${folder}/complete.txt")
    file(READ "${folder}/complete.txt" have)
  endif()
  if(have STREQUAL wanted)
    return()
  endif()
  file(REMOVE "${folder}/complete.txt")
endmacro()
