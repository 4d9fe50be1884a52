#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies projects of examples/projects/ out of the tree, builds and runs them as a user would:

  find_package   Installs this build tree. Builds the project find_package against it.
  fetch_content  Builds the project fetch_content on the source tree, with a shared library. Then
                 installs that library and builds the project find_package against it.

fetch_content compiles the library again. It tests the CMake files and not the code, so it compiles
as fast as possible: without optimization, several files at once, and with precompiled standard
headers. The preset `tidy` (./dev check) shows that each file compiles separately. No other build
has the same object files, so ccache is not used.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# A build type that no CMake file knows, so that none adds flags to it.
LIBRARY = ["-DCMAKE_BUILD_TYPE=Unoptimized", "-DCMAKE_UNITY_BUILD=ON", "-DBUILD_SHARED_LIBS=ON",
           "-DTENSORGRAD_INSTALL=ON"]
ONE_SET = "-DHWY_COMPILE_ONLY_STATIC"  # one instruction set instead of all
STANDARD = """algorithm array atomic bit charconv chrono cmath cstdint cstdio cstdlib cstring deque
    filesystem fstream functional limits map memory mutex numbers numeric optional set span sstream
    string string_view thread tuple type_traits unordered_map utility variant vector"""


def run(*command, folder=None):
    print("+", *command, flush=True)
    subprocess.run([str(c) for c in command], check=True, cwd=folder)


def standard_headers(folder, compiler):
    """Precompiles the standard headers. Returns the flags that use them."""
    header = folder / "standard.h"
    header.write_text("".join(f"#include <{name}>\n" for name in STANDARD.split()))
    run(compiler, "-std=c++20", "-fPIC", "-x", "c++-header", header, "-o", f"{header}.gch")
    return f"-include {header}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=["find_package", "fetch_content"])
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

        def try_out(project, *options):
            """Copies a project, builds it, runs it in an empty folder. Returns its build folder."""
            shutil.copytree(args.source / "examples" / "projects" / project, top / project)
            out, runs = top / project / "build", top / project / "runs"
            run(args.cmake, "-G", "Ninja", "-S", top / project, "-B", out,
                f"-DCMAKE_CXX_COMPILER={args.compiler}", *options)
            run(args.cmake, "--build", out, "--parallel", args.jobs)
            runs.mkdir()
            run(out / "app", folder=runs)
            return out

        installed, flags = args.build, args.flags
        if args.way == "fetch_content":
            standard = standard_headers(top, args.compiler)
            built = try_out("fetch_content", f"-DFETCHCONTENT_SOURCE_DIR_TENSORGRAD={args.source}",
                            f"-DTENSORGRAD_FETCH_DIR={args.fetched}", *LIBRARY,
                            f"-DTENSORGRAD_WEBGPU={args.webgpu}",
                            f"-DCMAKE_CXX_FLAGS={standard} {ONE_SET}")
            installed, flags = built / "_deps" / "tensorgrad-build", ""
        run(args.cmake, "--install", installed, "--prefix", top / "prefix")
        try_out("find_package", "-DCMAKE_BUILD_TYPE=Release",
                f"-DCMAKE_PREFIX_PATH={top / 'prefix'}", f"-DCMAKE_CXX_FLAGS={flags}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
