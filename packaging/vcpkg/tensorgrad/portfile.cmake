# SPDX-License-Identifier: MIT
# An overlay port: vcpkg install tensorgrad --overlay-ports=packaging/vcpkg
#
# It builds the sources that this file is part of, of a clone or of the unpacked archive. vcpkg does
# not notice changes of these: after one, remove the package and install it with --no-binarycaching.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(VCPKG_TARGET_IS_WINDOWS)
  vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
endif()
vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options FEATURES webgpu TENSORGRAD_WEBGPU)

# The library includes <stb/stb_image.h>, which is <stb_image.h> in vcpkg's port of stb.
set(stb_headers "${CURRENT_BUILDTREES_DIR}/stb_headers")
file(REMOVE_RECURSE "${stb_headers}")
file(GLOB headers "${CURRENT_INSTALLED_DIR}/include/stb_image*.h")
file(COPY ${headers} DESTINATION "${stb_headers}/stb")

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${feature_options}
    -DTENSORGRAD_BUILD_BENCH=OFF
    -DTENSORGRAD_BUILD_CLI=OFF
    -DTENSORGRAD_BUILD_EXAMPLES=OFF
    -DTENSORGRAD_BUILD_TESTS=OFF
    -DTENSORGRAD_WARNINGS=OFF
    -DTENSORGRAD_PACKAGE=ON
    -DCMAKE_UNITY_BUILD=ON
    "-DTENSORGRAD_FETCH_DIR=${CURRENT_BUILDTREES_DIR}/fetched"
    "-DTENSORGRAD_STB_INCLUDE_DIR=${stb_headers}")
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/tensorgrad)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/THIRD_PARTY_LICENSES.md")
