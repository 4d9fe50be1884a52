# SPDX-License-Identifier: MIT
# Provides Python packages that tests run: onnx and onnxruntime for exported models, and tensorboard
# for event files.
#
#   tensorgrad_provide_packages(<folder-var> <name>)
#
# sets the folder that PYTHONPATH must name, with the packages pinned in
# tools/<name>-requirements.txt. They are fetched once into TENSORGRAD_FETCH_DIR and shared by every
# build tree that names the same folder. Without them (no network) there is a warning, and the tests
# fail.

include(FetchOnce)

set(_tensorgrad_tools "${CMAKE_CURRENT_LIST_DIR}/../tools")

function(tensorgrad_provide_packages folder_var name)
  set(root "${TENSORGRAD_FETCH_DIR}/${name}")
  set(pin "${_tensorgrad_tools}/${name}-requirements.txt")
  set(${folder_var} "${root}/site" PARENT_SCOPE)
  tensorgrad_fetch_once("${root}" "" "${pin}")

  message(STATUS "Fetching Python packages for tests (tools/${name}-requirements.txt)")
  file(REMOVE_RECURSE "${root}/site")
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -m pip --disable-pip-version-check --quiet install
      --no-deps --only-binary :all: --target "${root}/site" --requirement "${pin}"
    RESULT_VARIABLE status ERROR_VARIABLE complaint)
  if(NOT status EQUAL 0)
    message(WARNING "Could not fetch tools/${name}-requirements.txt with pip; the tests that need "
      "it will fail:\n${complaint}")
    return()
  endif()
  file(WRITE "${root}/complete.txt" "${wanted}")
endfunction()
