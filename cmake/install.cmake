# SPDX-License-Identifier: MIT
# Install rules and the package that find_package(tensorgrad CONFIG) reads.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tensorgrad")

install(TARGETS tensorgrad EXPORT tensorgrad-targets)
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/include/tensorgrad"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(EXPORT tensorgrad-targets NAMESPACE tensorgrad:: DESTINATION "${package_dir}")
if(EMSCRIPTEN)  # no system has these for WebAssembly
  list(GET CMAKE_FIND_ROOT_PATH 0 sysroot)  # cmake/wasm.cmake
  install(FILES "${sysroot}/lib/libhwy.a" "${sysroot}/lib/libhwy_test.a"
    "${sysroot}/lib/libutf8proc.a" "${sysroot}/lib/libz.a"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(DIRECTORY "${sysroot}/lib/cmake/hwy" DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake")
  install(FILES "${sysroot}/include/utf8proc.h" "${sysroot}/include/zconf.h"
    "${sysroot}/include/zlib.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
if(TENSORGRAD_WEBGPU AND EMSCRIPTEN)
  install(FILES src/backend/webgpu/browser.js DESTINATION "${CMAKE_INSTALL_DATADIR}/tensorgrad")
elseif(TENSORGRAD_WEBGPU)
  install(PROGRAMS "${wgpu_library}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/tensorgrad")
endif()
if(TARGET tg)
  install(TARGETS tg)
endif()
install(FILES LICENSE THIRD_PARTY_LICENSES.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")

get_target_property(library_type tensorgrad TYPE)
string(COMPARE EQUAL "${library_type}" "STATIC_LIBRARY" TENSORGRAD_IS_STATIC)
configure_package_config_file(
  "${CMAKE_CURRENT_SOURCE_DIR}/cmake/tensorgrad-config.cmake.in" tensorgrad-config.cmake
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(tensorgrad-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tensorgrad-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/tensorgrad-config-version.cmake"
  "${CMAKE_CURRENT_SOURCE_DIR}/cmake/Findutf8proc.cmake" DESTINATION "${package_dir}")
