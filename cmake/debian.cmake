# SPDX-License-Identifier: MIT
# Debian packages by CPack: libtensorgrad0.3 (named after the SONAME), libtensorgrad-dev and
# tensorgrad-tools. `./dev package` builds them and has lintian check them.
set(soname "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(library_package "libtensorgrad${soname}")
set(headers_package libtensorgrad-dev)
set(tools_package tensorgrad-tools)
set(debian_version "${PROJECT_VERSION}-1")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tensorgrad)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_COMPONENTS_ALL library headers tools)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_SOURCE_DIR}/build/package")
set(CPACK_STRIP_FILES ON)
# Permissions that Debian's policy requires, independent of the umask.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# The maintainer is the person who builds the packages, as for Debian's own tools.
set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
if("$ENV{DEBFULLNAME}" STREQUAL "" OR "$ENV{DEBEMAIL}" STREQUAL "")
  set(maintainer "tensorgrad authors <nobody@localhost>")
endif()
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${maintainer}")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

# CPack indents what follows the first line.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "library and tool that train neural networks")
set(about "tensorgrad is a C++20 library that trains neural networks on GPUs, through
WebGPU, and on the CPU. It compiles whole training steps to a few fused
kernels. Layers, losses and optimizers have PyTorch's names and defaults.
.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME "${library_package}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS libvulkan1)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${about}
This package contains the shared library, and wgpu-native, which it loads if a
program requests a GPU.")

set(CPACK_DEBIAN_HEADERS_PACKAGE_NAME "${headers_package}")
set(CPACK_DEBIAN_HEADERS_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_HEADERS_PACKAGE_DEPENDS "${library_package} (= ${debian_version})")
set(CPACK_COMPONENT_HEADERS_DESCRIPTION "${about}
This package contains the headers, and the files that CMake's find_package()
and pkg-config read.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME "${tools_package}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${library_package} (= ${debian_version})")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "${about}
This package contains the command-line tool tg, which trains classifiers and
language models.")
# dpkg-shlibdeps, run for the tool, finds the library that the tool links to.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")

# The files of each package in usr/share/doc, and its lintian overrides.
set(folder "${PROJECT_BINARY_DIR}/debian")
file(MAKE_DIRECTORY "${folder}")
# For the library. CPack's own shlibs file has no ldconfig trigger.
file(WRITE "${folder}/shlibs"
  "libtensorgrad ${soname} ${library_package} (>= ${PROJECT_VERSION})\n")
file(WRITE "${folder}/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${folder}/shlibs" "${folder}/triggers")
file(READ LICENSE license)
file(READ THIRD_PARTY_LICENSES.md third_party)
# Debian packages refer to one copy of the Apache license.
string(REGEX REPLACE "(\n## Apache-2\\.0\n[^`]*)```[^`]*```"
  "\\1On Debian systems, its text is in /usr/share/common-licenses/Apache-2.0." third_party
  "${third_party}")
file(WRITE "${folder}/copyright" "${license}\n${third_party}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  LICENSE THIRD_PARTY_LICENSES.md packaging/debian/overrides)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, if set
file(WRITE "${folder}/changelog.Debian" "tensorgrad (${debian_version}) unstable; urgency=medium

  * Version ${PROJECT_VERSION}. See CHANGELOG.md in the sources.

 -- ${maintainer}  ${date}
")
file(COPY_FILE docs/tg.1 "${folder}/tg.1")
foreach(file changelog.Debian tg.1)
  execute_process(COMMAND gzip -9nf "${folder}/${file}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(STRINGS packaging/debian/overrides overrides)
install(FILES "${folder}/tg.1.gz" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tools)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(package "${${component}_package}")
  install(FILES "${folder}/copyright" "${folder}/changelog.Debian.gz"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}" COMPONENT ${component})
  # A line of the file is a comment or `COMPONENT tag ...`.
  set(mine "")
  set(reasons "")
  foreach(line IN LISTS overrides)
    if(line MATCHES "^#")
      string(APPEND reasons "${line}\n")
    else()
      if(line MATCHES "^(${component}|all) (.*)")
        string(APPEND mine "${reasons}${CMAKE_MATCH_2}\n")
      endif()
      set(reasons "")
    endif()
  endforeach()
  if(mine)
    file(WRITE "${folder}/${component}.overrides" "${mine}")
    install(FILES "${folder}/${component}.overrides" RENAME "${package}"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/lintian/overrides" COMPONENT ${component})
  endif()
endforeach()
include(CPack)
