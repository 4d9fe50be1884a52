# SPDX-License-Identifier: MIT
# Calls on files that fail, and kills at them: a sample of the points that ./dev faults goes through.
# Only where what is preloaded is the C library's own: not under sanitizers.
if(TENSORGRAD_SANITIZE OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT TARGET tg)
  return()
endif()
add_library(faulty_files SHARED "${CMAKE_CURRENT_LIST_DIR}/faulty_files.cc")
target_link_libraries(faulty_files PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(faulty_files PROPERTIES UNITY_BUILD OFF)
target_compile_features(faulty_files PRIVATE cxx_std_20)
tensorgrad_own_target(faulty_files)
add_executable(save_steps "${CMAKE_CURRENT_LIST_DIR}/save_steps.cc")
target_link_libraries(save_steps PRIVATE tensorgrad::tensorgrad)
tensorgrad_own_target(save_steps)
add_dependencies(released faulty_files save_steps tg)
set(faults "${Python3_EXECUTABLE}" -B "${CMAKE_CURRENT_LIST_DIR}/faults.py" --tg "$<TARGET_FILE:tg>"
  --save-steps "$<TARGET_FILE:save_steps>" --shim "$<TARGET_FILE:faulty_files>")
add_test(NAME faults.files COMMAND ${faults} --count 8)
# Without fsync, power failures lose files: else faults.files finds nothing.
add_test(NAME faults.files_selftest COMMAND ${faults} --only save --count 40 --ignore-sync)
set_tests_properties(faults.files_selftest PROPERTIES
  PASS_REGULAR_EXPRESSION "save: [0-9]+ calls, 40 of [0-9]+ points, [1-9]")
set_tests_properties(faults.files faults.files_selftest PROPERTIES
  LABELS "faults;slow;released" PROCESSORS 2 TIMEOUT 900)
