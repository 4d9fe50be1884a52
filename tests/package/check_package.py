#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and runs tests/package/program.cpp outside the tree, in one of two ways:

  installed     this build tree is installed; find_package(tensorgrad)
  subdirectory  add_subdirectory() of the source tree, which makes a shared library; this is then
                installed; find_package(tensorgrad)

The second builds the library again. As its CMake files are tested and not its code, that is done in
the quickest way: without optimisation, several files at once, with standard headers compiled
before. That each file compiles alone is what the preset `tidy` (./dev check) shows. Nothing else has
objects like these, so ccache would only take time.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# A build type of which no CMake file knows, so that nobody adds to its flags.
LIBRARY = ["-DCMAKE_BUILD_TYPE=Unoptimised", "-DCMAKE_UNITY_BUILD=ON", "-DBUILD_SHARED_LIBS=ON",
           "-DTENSORGRAD_INSTALL=ON"]
ONE_SET = "-DHWY_COMPILE_ONLY_STATIC"  # what is compiled once per instruction set, for one
STANDARD = """algorithm array atomic bit charconv chrono cmath cstdint cstdio cstdlib cstring deque
    filesystem fstream functional limits map memory mutex numbers numeric optional set span sstream
    string string_view thread tuple type_traits unordered_map utility variant vector"""


def run(*command):
    print("+", *command, flush=True)
    subprocess.run([str(c) for c in command], check=True)


def standard_headers(folder, compiler):
    """The flags that make a compiler read them compiled, where its options are those of here."""
    header = folder / "standard.h"
    header.write_text("".join(f"#include <{name}>\n" for name in STANDARD.split()))
    run(compiler, "-std=c++20", "-fPIC", "-x", "c++-header", header, "-o", f"{header}.gch")
    return f"-include {header}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=["installed", "subdirectory"])
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--flags", default="", help="compiler flags this build tree needs")
    parser.add_argument("--webgpu", default="ON", help="TENSORGRAD_WEBGPU")
    parser.add_argument("--fetched", type=pathlib.Path, required=True, help="TENSORGRAD_FETCH_DIR")
    parser.add_argument("--jobs", default=os.environ.get("TENSORGRAD_JOBS", str(os.cpu_count())))
    args = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="tensorgrad-package-") as folder:
        top = pathlib.Path(folder)
        shutil.copytree(args.source / "tests" / "package", top / "program")

        def try_out(how, *options):
            out = top / how
            run(args.cmake, "-G", "Ninja", "-S", top / "program" / how, "-B", out,
                "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_COMPILER={args.compiler}", *options)
            run(args.cmake, "--build", out, "--parallel", args.jobs)
            run(out / "program")
            return out

        installed, flags = args.build, args.flags
        if args.way == "subdirectory":
            standard = standard_headers(top, args.compiler)
            installed = try_out("add_subdirectory", f"-DTENSORGRAD_SOURCE={args.source}",
                                f"-DTENSORGRAD_FETCH_DIR={args.fetched}", *LIBRARY,
                                f"-DTENSORGRAD_WEBGPU={args.webgpu}",
                                f"-DCMAKE_CXX_FLAGS={standard} {ONE_SET}") / "tensorgrad"
            flags = ""
        run(args.cmake, "--install", installed, "--prefix", top / "prefix")
        try_out("find_package", f"-DCMAKE_PREFIX_PATH={top / 'prefix'}", f"-DCMAKE_CXX_FLAGS={flags}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
