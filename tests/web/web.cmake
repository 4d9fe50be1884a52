# SPDX-License-Identifier: MIT
# Tests in headless Chromium: every *_test.mjs here is a ctest web.NAME, run by node. ./dev test
# runs them in the released build only.
if(EMSCRIPTEN)
  return()
endif()
include(WebPackages)
tensorgrad_provide_web_packages(web_packages)
find_program(TENSORGRAD_NODE NAMES node nodejs)
mark_as_advanced(TENSORGRAD_NODE)
if(NOT TENSORGRAD_NODE)
  set(TENSORGRAD_NODE_COMMAND node)  # the tests then report that it is missing
else()
  set(TENSORGRAD_NODE_COMMAND "${TENSORGRAD_NODE}")
endif()

# Exports the models of runner_test.mjs.
add_executable(export_models web/export_models.cc)
target_link_libraries(export_models PRIVATE tensorgrad_test_needs test_support)
tensorgrad_own_target(export_models)
add_dependencies(released export_models)
if(TARGET tg)
  add_dependencies(released tg)
endif()

file(GLOB pages CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*_test.mjs")
foreach(page IN LISTS pages)
  get_filename_component(name "${page}" NAME_WE)
  string(REGEX REPLACE "_test$" "" name "${name}")
  add_test(NAME web.${name} COMMAND "${TENSORGRAD_NODE_COMMAND}" --test "${page}")
  set_tests_properties(web.${name} PROPERTIES LABELS "web;slow;released;as_released" TIMEOUT 900
    ENVIRONMENT "TENSORGRAD_WEB_PACKAGES=${web_packages};TENSORGRAD_BUILD=${CMAKE_BINARY_DIR}")
endforeach()
