# SPDX-License-Identifier: MIT
"""Stands for a package of Conan Center where that cannot be reached: the machine's own library of
that name. check_packages.py exports it once for each."""

from conan import ConanFile

LIBRARIES = {"highway": ["hwy"], "utf8proc": ["utf8proc"], "zlib": ["z"], "nlohmann_json": [],
             "stb": []}


class SystemLibrary(ConanFile):
    package_type = "unknown"

    def package_info(self):
        info = self.cpp_info
        info.bindirs, info.libdirs = [], []
        # stb's headers have no folder of their own in Conan Center's package.
        info.includedirs = ["/usr/include/stb"] if self.name == "stb" else []
        info.system_libs = LIBRARIES[self.name]
        if self.name == "zlib":
            info.set_property("cmake_file_name", "ZLIB")
            info.set_property("cmake_target_name", "ZLIB::ZLIB")
