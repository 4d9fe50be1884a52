# SPDX-License-Identifier: MIT
"""Conan recipe of the library: `conan create packaging/conan` in a clone or the unpacked archive.

Builds the sources that this file is part of. The dependencies have the names and versions of Conan
Center. With the option `webgpu`, CMake fetches wgpu-native with pip when it configures.
"""

import pathlib
import re
import shutil

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class Tensorgrad(ConanFile):
    name = "tensorgrad"
    description = "Trains neural networks: whole training steps compiled to fused kernels"
    license = "MIT"
    topics = ("neural-networks", "machine-learning", "webgpu", "gpu")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "webgpu": [True, False]}
    default_options = {"shared": False, "fPIC": True, "webgpu": True}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        header = pathlib.Path(self.recipe_folder, "../../include/tensorgrad/version.h")
        self.version = re.search(r'VERSION_STRING "([\d.]+)"', load(self, str(header)))[1]

    def export_sources(self):
        top = pathlib.Path(self.recipe_folder).resolve().parent.parent
        for pattern in ("CMakeLists.txt", "LICENSE", "THIRD_PARTY_LICENSES.md", "cmake/*",
                        "include/*", "src/*", "web/runner/*"):
            copy(self, pattern, src=str(top), dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        self.requires("highway/[>=1.0.3 <2]")
        self.requires("utf8proc/[>=2.8.0 <3]")
        self.requires("zlib/[>=1.2.11 <2]")
        self.requires("nlohmann_json/[>=3.11.2 <4]", visible=False)
        self.requires("stb/[>=cci.20210910]", visible=False)

    def generate(self):
        toolchain = CMakeToolchain(self)
        cache = toolchain.cache_variables
        for part in ("BENCH", "CLI", "EXAMPLES", "TESTS"):
            cache[f"TENSORGRAD_BUILD_{part}"] = False
        cache["TENSORGRAD_WARNINGS"] = False
        cache["TENSORGRAD_PACKAGE"] = True
        cache["TENSORGRAD_WEBGPU"] = bool(self.options.webgpu)
        cache["CMAKE_UNITY_BUILD"] = True
        # The library includes <stb/stb_image.h>, which is <stb_image.h> in Conan Center's package.
        headers = pathlib.Path(self.build_folder, "stb_headers")
        shutil.rmtree(headers, ignore_errors=True)
        (headers / "stb").mkdir(parents=True)
        for folder in self.dependencies["stb"].cpp_info.includedirs:
            copy(self, "stb_image*.h", src=folder, dst=str(headers / "stb"))
        cache["TENSORGRAD_STB_INCLUDE_DIR"] = headers.as_posix()
        toolchain.generate()
        dependencies = CMakeDeps(self)
        dependencies.set_property("highway", "cmake_file_name", "hwy")
        dependencies.set_property("highway", "cmake_target_name", "hwy::hwy")
        dependencies.set_property("utf8proc", "cmake_target_name", "utf8proc::utf8proc")
        dependencies.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        for file in ("LICENSE", "THIRD_PARTY_LICENSES.md"):
            copy(self, file, src=self.source_folder, dst=str(pathlib.Path(self.package_folder, "licenses")))
        # Conan writes its own.
        rmdir(self, str(pathlib.Path(self.package_folder, "lib", "cmake")))
        rmdir(self, str(pathlib.Path(self.package_folder, "lib", "pkgconfig")))
        rmdir(self, str(pathlib.Path(self.package_folder, "share")))

    def package_info(self):
        self.cpp_info.libs = ["tensorgrad"]
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["dl", "pthread", "m"]
