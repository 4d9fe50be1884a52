# SPDX-License-Identifier: MIT
# The fuzzers: with libFuzzer for ./dev fuzz (preset `fuzz`), else as tests that read their corpora.
set(fuzzed checkpoint config gguf gzip idx image ir mbjs numpy onnx safetensors tokenizer)
if(TARGET tg_parts)
  list(APPEND fuzzed run_folder)
endif()
add_custom_target(fuzzers)
foreach(name IN LISTS fuzzed)
  add_executable(${name}_fuzzer "${CMAKE_CURRENT_LIST_DIR}/${name}_fuzzer.cc")
  set_target_properties(${name}_fuzzer PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${name}_fuzzer PRIVATE tensorgrad::tensorgrad tensorgrad_private ZLIB::ZLIB)
  target_include_directories(${name}_fuzzer PRIVATE "${PROJECT_SOURCE_DIR}/src")
  if(name STREQUAL "run_folder")
    target_link_libraries(${name}_fuzzer PRIVATE tg_parts)
  endif()
  add_dependencies(fuzzers ${name}_fuzzer)
  if(TENSORGRAD_BUILD_FUZZERS)
    target_link_options(${name}_fuzzer PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name}_fuzzer PRIVATE "${CMAKE_CURRENT_LIST_DIR}/replay.cc")
    add_test(NAME fuzz.corpus.${name}
      COMMAND ${name}_fuzzer "${CMAKE_CURRENT_LIST_DIR}/corpus/${name}")
    set_tests_properties(fuzz.corpus.${name} PROPERTIES LABELS "fuzz;slow;released"
      ENVIRONMENT "${test_environment}")
  endif()
  tensorgrad_own_target(${name}_fuzzer)
  # libFuzzer's function has no header.
  target_compile_options(${name}_fuzzer PRIVATE
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-missing-declarations>"
    "$<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wno-missing-prototypes>")
endforeach()
