# SPDX-License-Identifier: MIT
# Provides onnx and onnxruntime, which tests run exported models with: the Python packages pinned in
# tools/onnx-requirements.txt.
#
#   tensorgrad_provide_onnxruntime(<folder-var>)
#
# sets the folder that PYTHONPATH must name, fetched once into TENSORGRAD_FETCH_DIR and shared by
# every build tree that names the same folder. Without them (no network) there is a warning, and the
# tests fail.

include(FetchOnce)

set(_tensorgrad_onnx_pin "${CMAKE_CURRENT_LIST_DIR}/../tools/onnx-requirements.txt")

function(tensorgrad_provide_onnxruntime folder_var)
  set(root "${TENSORGRAD_FETCH_DIR}/onnxruntime")
  set(${folder_var} "${root}/site" PARENT_SCOPE)
  tensorgrad_fetch_once("${root}" "" "${_tensorgrad_onnx_pin}")

  message(STATUS "Fetching onnxruntime (pinned in tools/onnx-requirements.txt)")
  file(REMOVE_RECURSE "${root}/site")
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -m pip --disable-pip-version-check --quiet install
      --no-deps --only-binary :all: --target "${root}/site" --requirement "${_tensorgrad_onnx_pin}"
    RESULT_VARIABLE status ERROR_VARIABLE complaint)
  if(NOT status EQUAL 0)
    message(WARNING "Could not fetch onnxruntime with pip; the tests of exported models will "
      "fail:\n${complaint}")
    return()
  endif()
  file(WRITE "${root}/complete.txt" "${wanted}")
endfunction()
