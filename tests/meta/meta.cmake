# SPDX-License-Identifier: MIT
# Tests of the repository itself. They need no compiler and no device.
function(meta_test name)
  add_test(NAME meta.${name} COMMAND "${Python3_EXECUTABLE}" -B ${ARGN})
  set_tests_properties(meta.${name} PROPERTIES
    LABELS "meta;fast" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
endfunction()

meta_test(layers tools/check_layers.py)
meta_test(layers_selftest tests/meta/check_layers_test.py)
meta_test(behaviours tests/meta/behaviours_test.py)
meta_test(includes_selftest tests/meta/check_includes_test.py)
foreach(check IN ITEMS paths links commands env heads temporary includes)
  meta_test(${check} tools/check_repo.py ${check})
endforeach()
meta_test(abi_selftest tests/meta/check_abi_test.py)
meta_test(repo_selftest tests/meta/check_repo_test.py)
meta_test(commits_selftest tests/meta/check_commits_test.py)
meta_test(prose tools/check_prose.py --check)
meta_test(prose_selftest tests/meta/check_prose_test.py)
meta_test(questions tests/meta/questions_test.py)
meta_test(reference_selftest tests/meta/reference_test.py)
meta_test(bench_tables tests/meta/bench_tables_test.py)
meta_test(scaling_simulator tests/meta/scaling_simulator_test.py)
meta_test(dev tests/meta/dev_test.py)
foreach(flag IN ITEMS -h --help)
  add_test(NAME meta.dev${flag} COMMAND "${PROJECT_SOURCE_DIR}/dev" ${flag})
  set_tests_properties(meta.dev${flag} PROPERTIES LABELS "meta;fast")
endforeach()

# Checks docs/ops.md against the results of the op tests, including those on WebGPU.
if(NOT TENSORGRAD_WEBGPU)
  return()
endif()
add_test(NAME meta.ops_page COMMAND "${Python3_EXECUTABLE}" -B tools/ops_page.py
  --results "${CMAKE_CURRENT_BINARY_DIR}")
set_tests_properties(meta.ops_page PROPERTIES LABELS "meta;ops;released;as_released" FIXTURES_REQUIRED ops_results
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
