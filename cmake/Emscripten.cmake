# SPDX-License-Identifier: MIT
# How programs for the browser are compiled and linked. Whoever links the library gets it.
set(exceptions -fwasm-exceptions)
foreach(part IN ITEMS tensorgrad ${parts})
  target_compile_options(${part} PUBLIC ${exceptions} PRIVATE -msimd128)
endforeach()
# Pages download it: what does not run once per element is as small as it can be.
foreach(part IN ITEMS tensorgrad tensorgrad_in_double tensorgrad_webgpu)
  target_compile_options(${part} PRIVATE "$<$<CONFIG:Release>:-Oz>")
endforeach()
target_link_options(tensorgrad PUBLIC ${exceptions}
  -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sSTACK_SIZE=8MB)
if(TENSORGRAD_WASM_THREADS)
  foreach(part IN ITEMS tensorgrad ${parts})
    target_compile_options(${part} PUBLIC -pthread)
  endforeach()
  # The warning is about JavaScript that reads the memory, which nothing here does per element.
  target_link_options(tensorgrad PUBLIC -pthread -Wno-pthreads-mem-growth)
endif()
if(TENSORGRAD_WEBGPU)
  # The program is suspended while it waits for a promise of WebGPU (JSPI).
  target_link_options(tensorgrad PUBLIC -sJSPI
    "$<BUILD_INTERFACE:--js-library=${PROJECT_SOURCE_DIR}/src/backend/webgpu/browser.js>"
    "$<INSTALL_INTERFACE:--js-library=\${_IMPORT_PREFIX}/${CMAKE_INSTALL_DATADIR}/tensorgrad/browser.js>")
endif()
