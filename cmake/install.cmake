# SPDX-License-Identifier: MIT
# Install rules, the files that find_package(tensorgrad CONFIG) reads, and a pkg-config file.
# Components: library (to run programs), headers (to build them), tools (tg).
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tensorgrad")

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME headers)
install(TARGETS tensorgrad EXPORT tensorgrad-targets
  RUNTIME COMPONENT library
  LIBRARY COMPONENT library NAMELINK_COMPONENT headers)
# For users, MPI is needed if it was asked for, not if the tests found it.
set(TENSORGRAD_INSTALLS_MPI OFF)
if(TARGET tensorgrad_mpi AND NOT TENSORGRAD_MPI STREQUAL "AUTO")
  set(TENSORGRAD_INSTALLS_MPI ON)
  install(TARGETS tensorgrad_mpi EXPORT tensorgrad-targets
    RUNTIME COMPONENT library
    LIBRARY COMPONENT library NAMELINK_COMPONENT headers)
  if(TARGET tg_mpi)
    install(TARGETS tg_mpi DESTINATION "${CMAKE_INSTALL_LIBDIR}/tensorgrad" COMPONENT tools)
  endif()
endif()
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
  if(TENSORGRAD_DEBIAN)  # its policy does not allow debug symbols
    execute_process(COMMAND "${CMAKE_STRIP}" --strip-unneeded "${wgpu_library}"
      -o "${CMAKE_CURRENT_BINARY_DIR}/${wgpu_name}" COMMAND_ERROR_IS_FATAL ANY)
    set(wgpu_library "${CMAKE_CURRENT_BINARY_DIR}/${wgpu_name}")
  endif()
  install(FILES "${wgpu_library}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/tensorgrad"
    COMPONENT library)
endif()
if(TARGET tg)
  install(TARGETS tg COMPONENT tools)
endif()
if(TARGET tg AND NOT TENSORGRAD_DEBIAN)  # cmake/debian.cmake installs it compressed
  install(FILES docs/tg.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tools)
endif()
if(NOT TENSORGRAD_DEBIAN)  # Debian packages contain them as `copyright`
  install(FILES LICENSE THIRD_PARTY_LICENSES.md DESTINATION "${CMAKE_INSTALL_DOCDIR}"
    COMPONENT library)
endif()

get_target_property(library_type tensorgrad TYPE)
string(COMPARE EQUAL "${library_type}" "STATIC_LIBRARY" TENSORGRAD_IS_STATIC)
configure_package_config_file(
  "${CMAKE_CURRENT_SOURCE_DIR}/cmake/tensorgrad-config.cmake.in" tensorgrad-config.cmake
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(tensorgrad-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tensorgrad-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/tensorgrad-config-version.cmake"
  "${CMAKE_CURRENT_SOURCE_DIR}/cmake/Findutf8proc.cmake" DESTINATION "${package_dir}")

# Programs that link the static library must also link its dependencies.
set(pc_requires "")
set(pc_libs "-ltensorgrad")
if(TENSORGRAD_IS_STATIC)
  set(pc_requires "Requires: libhwy libutf8proc zlib\n")
  set(pc_libs "-ltensorgrad -pthread")
  foreach(library IN LISTS CMAKE_DL_LIBS)
    string(APPEND pc_libs " -l${library}")
  endforeach()
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
  OUTPUT_VARIABLE pc_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
  OUTPUT_VARIABLE pc_includedir)
# The prefix is relative to the file, because `cmake --install --prefix` can change it.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE pc_prefix)
configure_file("${CMAKE_CURRENT_SOURCE_DIR}/cmake/tensorgrad.pc.in" tensorgrad.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tensorgrad.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(TENSORGRAD_DEBIAN)
  include(cmake/debian.cmake)
endif()
