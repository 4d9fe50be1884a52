#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and runs tests/package/program.cpp outside the tree, in one of three ways:

  static        this build tree is installed; find_package(tensorgrad)
  shared        the library is built as a shared one and installed; find_package(tensorgrad)
  subdirectory  add_subdirectory() of the source tree

The last two build the library again, without WebGPU and, as the packaging is tested and not the
code, without optimisation; but each file alone, as a user's build does and our presets do not, so
that an include that is missing is found. They use the same flags: ccache answers for the second.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LIBRARY = ["-DTENSORGRAD_WEBGPU=OFF", "-DTENSORGRAD_WARNINGS=ON", "-DTENSORGRAD_WERROR=ON",
           "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG"]
BARE = [f"-DTENSORGRAD_BUILD_{part}=OFF" for part in ("CLI", "EXAMPLES", "BENCH", "TESTS")]


def run(*command):
    print("+", *command, flush=True)
    subprocess.run([str(c) for c in command], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=["static", "shared", "subdirectory"])
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--flags", default="", help="compiler flags this build tree needs")
    parser.add_argument("--jobs", default=os.environ.get("TENSORGRAD_JOBS", str(os.cpu_count())))
    args = parser.parse_args()

    def configure(source, build, *options):
        run(args.cmake, "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_CXX_COMPILER={args.compiler}", *options)

    def build(folder):
        run(args.cmake, "--build", folder, "--parallel", args.jobs)

    with tempfile.TemporaryDirectory(prefix="tensorgrad-package-") as folder:
        top = pathlib.Path(folder)
        shutil.copytree(args.source / "tests" / "package", top / "program")
        options = []
        if args.way == "subdirectory":
            how = "add_subdirectory"
            options = [f"-DTENSORGRAD_SOURCE={args.source}", *LIBRARY]
            ccache = shutil.which("ccache")
            if ccache:
                options.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}")
        else:
            how = "find_package"
            installed = args.build
            if args.way == "shared":
                installed = top / "library"
                configure(args.source, installed, "-DBUILD_SHARED_LIBS=ON", *LIBRARY, *BARE)
                build(installed)
            else:
                options.append(f"-DCMAKE_CXX_FLAGS={args.flags}")
            run(args.cmake, "--install", installed, "--prefix", top / "prefix")
            options.append(f"-DCMAKE_PREFIX_PATH={top / 'prefix'}")
        configure(top / "program" / how, top / "out", *options)
        build(top / "out")
        run(top / "out" / "program")
    return 0


if __name__ == "__main__":
    sys.exit(main())
