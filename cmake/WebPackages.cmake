# SPDX-License-Identifier: MIT
# Provides the npm packages that browser tests need: those pinned in tests/web/package-lock.json.
#
#   tensorgrad_provide_web_packages(<folder-var>)
#
# sets the folder that holds node_modules, fetched once into TENSORGRAD_FETCH_DIR and shared by every
# build tree that names the same folder. If npm is missing or fails, the tests of pages fail.

include(FetchOnce)

set(_tensorgrad_web_pins "${CMAKE_CURRENT_LIST_DIR}/../tests/web")

function(tensorgrad_provide_web_packages folder_var)
  set(root "${TENSORGRAD_FETCH_DIR}/web")
  set(${folder_var} "${root}" PARENT_SCOPE)
  tensorgrad_fetch_once("${root}" ""
    "${_tensorgrad_web_pins}/package.json" "${_tensorgrad_web_pins}/package-lock.json")

  find_program(TENSORGRAD_NPM npm)
  mark_as_advanced(TENSORGRAD_NPM)
  if(NOT TENSORGRAD_NPM)
    message(STATUS "npm is missing: the tests of pages fail (./dev setup installs it)")
    return()
  endif()
  message(STATUS "Fetching Playwright (pinned in tests/web/package-lock.json)")
  file(COPY "${_tensorgrad_web_pins}/package.json" "${_tensorgrad_web_pins}/package-lock.json"
    DESTINATION "${root}")
  execute_process(
    COMMAND "${TENSORGRAD_NPM}" ci --ignore-scripts --no-audit --no-fund
    WORKING_DIRECTORY "${root}"
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE complaint)
  if(NOT status EQUAL 0)
    message(WARNING "Could not fetch Playwright with npm; the tests of pages will fail:\n"
      "${complaint}")
    return()
  endif()
  file(WRITE "${root}/complete.txt" "${wanted}")
endfunction()
